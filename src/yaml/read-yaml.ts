import type { Document, Node } from 'yaml';
import type { DocumentIssue } from '../keys/document.ts';
import type { LocatedIssue, Position } from './located-issues.ts';

/** How many aliases are expanded: enough for thousands of keys with two each, too few for a "billion laughs" attack. */
const MAX_ALIASES = 10_000;

const TOO_DEEP = 'The text is nested too deeply.';

/** The value of a YAML text, or what is wrong with the text. */
export type ReadYaml =
  | { value: unknown; positionOf: (issue: Pick<DocumentIssue, 'path' | 'ofField'>) => Position }
  | { issues: LocatedIssue[] };

/** Parses one YAML 1.2 document by the core schema, in which dates, `yes` and `no` are strings. */
export async function readYaml(text: string): Promise<ReadYaml> {
  const { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, visit } = await import('yaml');
  const lines = new LineCounter();
  const positionAt = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  let document: Document.Parsed;
  try {
    // Duplicate fields are found below: the library's own check takes quadratic time.
    document = parseDocument(text, {
      lineCounter: lines,
      version: '1.2',
      schema: 'core',
      prettyErrors: false,
      uniqueKeys: false,
    });
    const problems = [...document.errors, ...document.warnings];
    // The library reports some of its own stack overflows as errors in the text.
    if (problems.some(({ message }) => /stack overflow|call stack/i.test(message))) return atStart(TOO_DEEP);
    const issues = problems.map(({ code, message, pos }) => ({
      ...positionAt(pos[0]),
      message: code === 'MULTIPLE_DOCS' ? 'A second document starts here; only one is allowed.' : message,
    }));
    issues.push(...validateNodes());
    if (issues.length > 0) return { issues };
    return { value: document.toJS({ maxAliasCount: MAX_ALIASES }), positionOf: (issue) => positionAt(offsetOf(issue)) };
  } catch (error) {
    return atStart(
      error instanceof RangeError ? TOO_DEEP : `The aliases expand to too much; at most ${MAX_ALIASES} are allowed.`,
    );
  }

  /** Finds duplicate fields, and aliases without an anchor. */
  function validateNodes(): LocatedIssue[] {
    const anchors = new Set<string>();
    const issues: LocatedIssue[] = [];
    const report = (node: Node, message: string) => issues.push({ ...positionAt(node.range?.[0] ?? 0), message });
    const inspect = (node: Node) => {
      if (isAlias(node)) {
        if (!anchors.has(node.source)) report(node, `There is no anchor "&${node.source}" before this alias.`);
        return;
      }
      if ('anchor' in node && node.anchor !== undefined) anchors.add(node.anchor);
      const fields = new Set<string>();
      for (const { key } of isMap(node) ? node.items : []) {
        if (!isScalar(key)) continue;
        const field = String(key.value);
        if (fields.has(field)) report(key, `The field "${field}" is given more than once.`);
        fields.add(field);
      }
    };
    visit(document, { Node: (_, node) => inspect(node) });
    return issues;
  }

  /** Where the node that an issue is about starts. If the path leads through an alias, that is the alias. */
  function offsetOf({ path, ofField = false }: Pick<DocumentIssue, 'path' | 'ofField'>): number {
    let node = document.contents as unknown;
    let offset = document.contents?.range[0] ?? 0;
    for (const [depth, segment] of path.entries()) {
      let next: unknown;
      if (isSeq(node)) next = node.items[Number(segment)];
      if (isMap(node)) {
        const pair = node.items.find(({ key }) => String(key) === segment);
        next = ofField && depth === path.length - 1 ? pair?.key : (pair?.value ?? pair?.key);
      }
      const [start] = (next as { range?: [number] } | undefined)?.range ?? [];
      if (start === undefined) break;
      [node, offset] = [next, start];
    }
    return offset;
  }
}

function atStart(message: string): ReadYaml {
  return { issues: [{ line: 1, column: 1, message }] };
}
