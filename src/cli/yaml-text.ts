import type { Document, Node } from 'yaml';
import type { DeclarationFault } from '../keys/declaration.ts';

/** How many aliases there may be: two in each of some thousand keys. Aliases of aliases could stand for any amount. */
const MOST_ALIASES = 10_000;

/** A place in a text, from 1 on. */
export interface Place {
  line: number;
  column: number;
}

/** One thing that is wrong with a text. */
export interface PlacedFault extends Place {
  message: string;
}

/** What a YAML text says, or what keeps it from saying anything. */
export type ReadYaml = { value: unknown; placeOf(fault: Pick<DeclarationFault, 'path' | 'ofField'>): Place } | { faults: PlacedFault[] };

/** Reads a text of one YAML 1.2 document by the core schema, in which dates, yes and no are texts. */
export async function readYaml(text: string): Promise<ReadYaml> {
  const { isAlias, isMap, isSeq, LineCounter, parseDocument, visit } = await import('yaml');
  const lines = new LineCounter();
  const placeAt = (offset: number): Place => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  let document: Document.Parsed;
  try {
    document = parseDocument(text, { lineCounter: lines, version: '1.2', schema: 'core', prettyErrors: false });
  } catch {
    return atStart('The text is nested too deeply.');
  }
  const problems = [...document.errors, ...document.warnings].map(({ code, message, pos }) => ({
    ...placeAt(pos[0]),
    message: code === 'MULTIPLE_DOCS' ? 'Another document begins here; a file has one only.' : message,
  }));
  problems.push(...lostAliases());
  if (problems.length > 0) return { faults: problems };
  try {
    return { value: document.toJS({ maxAliasCount: MOST_ALIASES }), placeOf: (fault) => placeAt(offsetOf(fault)) };
  } catch {
    return atStart(`The aliases stand for too much. At most ${MOST_ALIASES} are allowed.`);
  }

  /** The library would find them one by one, without their places. */
  function lostAliases(): PlacedFault[] {
    const anchors = new Set<string>();
    const faults: PlacedFault[] = [];
    const look = (node: Node) => {
      if (isAlias(node)) {
        const message = `There is no anchor "&${node.source}" before this alias.`;
        if (!anchors.has(node.source)) faults.push({ ...placeAt(node.range?.[0] ?? 0), message });
      } else if ('anchor' in node && node.anchor !== undefined) anchors.add(node.anchor);
    };
    visit(document, { Node: (_, node) => look(node) });
    return faults;
  }

  /** Where the part of the document that a fault means begins; an alias on the way there is the place itself. */
  function offsetOf({ path, ofField = false }: Pick<DeclarationFault, 'path' | 'ofField'>): number {
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
  return { faults: [{ line: 1, column: 1, message }] };
}
