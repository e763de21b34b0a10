import type { Document, Node } from 'yaml';
import type { DeclarationIssue } from '../../keys/apply/declaration.ts';

/** How many aliases there may be: two in each of some thousand keys. Aliases of aliases could stand for any amount. */
const MAX_ALIASES = 10_000;

const TOO_DEEP = 'The text is nested too deeply.';

/** A place in a text, from 1 on. */
export interface Place {
  line: number;
  column: number;
}

/** One thing that is wrong with a text. */
export interface PlacedIssue extends Place {
  message: string;
}

/** What a YAML text says, or what keeps it from saying anything. */
export type ReadYaml =
  | { value: unknown; placeOf(issue: Pick<DeclarationIssue, 'path' | 'ofField'>): Place }
  | { issues: PlacedIssue[] };

/** Reads a text of one YAML 1.2 document by the core schema, in which dates, yes and no are texts. */
export async function readYaml(text: string): Promise<ReadYaml> {
  const { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, visit } = await import('yaml');
  const lines = new LineCounter();
  const placeAt = (offset: number): Place => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  let document: Document.Parsed;
  try {
    // What stands twice is looked for below: the library compares each key with all others.
    document = parseDocument(text, {
      lineCounter: lines,
      version: '1.2',
      schema: 'core',
      prettyErrors: false,
      uniqueKeys: false,
    });
    const problems = [...document.errors, ...document.warnings];
    // The library takes some of its own stack overflows for errors in the text.
    if (problems.some(({ message }) => /stack overflow|call stack/i.test(message))) return atStart(TOO_DEEP);
    const issues = problems.map(({ code, message, pos }) => ({
      ...placeAt(pos[0]),
      message: code === 'MULTIPLE_DOCS' ? 'Another document begins here; a file has one only.' : message,
    }));
    issues.push(...validateNodes());
    if (issues.length > 0) return { issues };
    return { value: document.toJS({ maxAliasCount: MAX_ALIASES }), placeOf: (issue) => placeAt(offsetOf(issue)) };
  } catch (error) {
    return atStart(
      error instanceof RangeError ? TOO_DEEP : `The aliases stand for too much. At most ${MAX_ALIASES} are allowed.`,
    );
  }

  /** Fields that are given twice, and aliases of nothing. */
  function validateNodes(): PlacedIssue[] {
    const anchors = new Set<string>();
    const issues: PlacedIssue[] = [];
    const refuse = (node: Node, message: string) => issues.push({ ...placeAt(node.range?.[0] ?? 0), message });
    const look = (node: Node) => {
      if (isAlias(node)) {
        if (!anchors.has(node.source)) refuse(node, `There is no anchor "&${node.source}" before this alias.`);
        return;
      }
      if ('anchor' in node && node.anchor !== undefined) anchors.add(node.anchor);
      const fields = new Set<string>();
      for (const { key } of isMap(node) ? node.items : []) {
        if (!isScalar(key)) continue;
        const field = String(key.value);
        if (fields.has(field)) refuse(key, `The field "${field}" is given more than once.`);
        fields.add(field);
      }
    };
    visit(document, { Node: (_, node) => look(node) });
    return issues;
  }

  /** Where the part of the document that a issue means begins; an alias on the way there is the place itself. */
  function offsetOf({ path, ofField = false }: Pick<DeclarationIssue, 'path' | 'ofField'>): number {
    let node = document.contents as unknown;
    let offset = document.contents?.range[0] ?? 0;
    for (const [depth, step] of path.entries()) {
      let next: unknown;
      if (isSeq(node)) next = node.items[Number(step)];
      if (isMap(node)) {
        const pair = node.items.find(({ key }) => String(key) === step);
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
