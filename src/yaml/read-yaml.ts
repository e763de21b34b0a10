import type { CST, Document, Node } from 'yaml';
import { type DocumentIssue, printable } from '../keys/basics/index.ts';

/** A position in a text; lines and columns start at 1. */
interface Position {
  line: number;
  column: number;
}

/** One problem in a text, and its position. */
interface LocatedIssue extends Position {
  message: string;
}

/** The most issues shown: the first ones in the file. */
const MAX_SHOWN_ISSUES = 20;
/** The most issues that get a line and column before sorting, so that a hopeless file is refused quickly. */
const MAX_LOCATED_ISSUES = 1000;

/**
 * Issues of a document as lines of text: see `locatedText`.
 * @param positionOf finds the position of an issue in the file
 */
export function describeIssues(
  name: string,
  issues: readonly DocumentIssue[],
  positionOf: (issue: Pick<DocumentIssue, 'path' | 'ofField'>) => Position,
): string {
  const located = issues.slice(0, MAX_LOCATED_ISSUES).map(({ message, related, ...issue }) => {
    const other = related ? ` The other one is in line ${positionOf({ path: related }).line}.` : '';
    return { ...positionOf(issue), message: message + other };
  });
  return locatedText(name, located, issues.length);
}

/**
 * Issues as lines of text, each as `name:line:column: message`, in the order of the file.
 * @param name that of the file
 * @param count the total number, if these are not all
 */
export function locatedText(name: string, issues: readonly LocatedIssue[], count = issues.length): string {
  const sorted = issues.toSorted((one, other) => one.line - other.line || one.column - other.column);
  const shown = sorted
    .slice(0, MAX_SHOWN_ISSUES)
    .map(({ line, column, message }) => `${name}:${line}:${column}: ${printable(message, 1000)}`);
  if (count > MAX_SHOWN_ISSUES) shown.push(`${count - MAX_SHOWN_ISSUES} more not shown.`);
  return shown.join('\n');
}

/**
 * The most aliases that are expanded: enough for thousands of keys with two each, too few for a "billion laughs"
 * attack.
 */
const MAX_ALIASES = 10_000;

/** The deepest nesting of lists and fields, since code that reads a text recurses as deep. */
const MAX_LEVELS = 100;

/** The value of a YAML text, or the problems with it. */
type ReadYaml =
  | { value: unknown; positionOf: (issue: Pick<DocumentIssue, 'path' | 'ofField'>) => Position }
  | { issues: LocatedIssue[] };

/** Parses one YAML 1.2 document by the core schema, in which dates, `yes` and `no` are strings. */
export async function readYaml(text: string): Promise<ReadYaml> {
  const { Composer, isAlias, isCollection, isMap, isScalar, isSeq, Lexer, LineCounter, Parser, visit } =
    await import('yaml');
  const lines = new LineCounter();
  const positionAt = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  const parser = new Parser(lines.addNewLine);
  // Duplicate fields are found below: the library's own check takes quadratic time.
  const composer = new Composer({
    version: '1.2',
    schema: 'core',
    resolveKnownTags: false,
    prettyErrors: false,
    uniqueKeys: false,
  });
  let document: Document.Parsed;
  let tooDeep = false;
  try {
    const [first, second] = composer.compose(tokens(), true, text.length);
    if (tooDeep) return atStart(`The text is nested too deeply: at most ${MAX_LEVELS} levels are allowed.`);
    document = first!;
    const problems = [...document.errors, ...document.warnings];
    const issues = problems.map(({ message, pos }) => ({ ...positionAt(pos[0]), message }));
    if (second)
      issues.push({ ...positionAt(second.range[0]), message: 'A second document starts here; only one is allowed.' });
    validateNodes(issues);
    if (issues.length > 0) return { issues };
    return { value: document.toJS({ maxAliasCount: MAX_ALIASES }), positionOf: (issue) => positionAt(offsetOf(issue)) };
  } catch (error) {
    // The library throws a ReferenceError only for aliases.
    if (!(error instanceof ReferenceError)) throw error;
    return atStart(`The aliases expand to too much; at most ${MAX_ALIASES} are allowed.`);
  }

  /** The tokens of the text, up to nesting that is too deep. */
  function* tokens(): Generator<CST.Token> {
    lines.addNewLine(0);
    for (const lexeme of new Lexer().lex(text)) {
      yield* parser.next(lexeme);
      tooDeep = parser.stack.length > MAX_LEVELS;
      if (tooDeep) return;
    }
    yield* parser.end();
  }

  /** Reports duplicate fields, and aliases that refer to nothing, or to a node that contains them. */
  function validateNodes(issues: LocatedIssue[]): void {
    const anchors = new Set<string>();
    const report = (node: Node, message: string) => issues.push({ ...positionAt(node.range?.[0] ?? 0), message });
    const inspect = (node: Node, within: readonly unknown[]) => {
      if (isAlias(node)) {
        if (!anchors.has(node.source)) report(node, `There is no anchor "&${node.source}" before this alias.`);
        else if (within.some((outer) => isCollection(outer) && outer.anchor === node.source))
          report(node, `This alias is within what it stands for, "&${node.source}".`);
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
    visit(document, { Node: (_, node, within) => inspect(node, within) });
  }

  /** The start of an issue's node. If the path leads through an alias, that of the alias. */
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
