import { stripVTControlCharacters } from 'node:util';
import type { Config } from '@oclif/core/interfaces';
import { printableJson } from '../keys/basics/index.ts';
import type { Terminal } from './terminal.ts';

/** A JSON document for stdout. */
export function jsonText(json: object): string {
  return `${printableJson(JSON.stringify(json, null, 2))}\n`;
}

/** True if a flag without a value is among the typed arguments. */
export function hasFlag(argv: readonly string[], flag: string): boolean {
  const index = argv.indexOf(flag);
  const end = argv.indexOf('--');
  return index >= 0 && (end < 0 || index < end);
}

/**
 * A result whose secrets, in fields `key`, are readable, but not enumerable, so that they do not end up in logs, copies
 * or JSON. oclif passes results to hooks of all plugins.
 */
export function withHiddenSecrets<Result extends object>(result: Result): Result {
  const copy: object = Array.isArray(result) ? [] : {};
  for (const [name, value] of Object.entries(result)) {
    // Effects on other keys name those keys in a field `key`.
    const isPlain = typeof value !== 'object' || value === null || name === 'issued';
    const shown: unknown = isPlain ? value : withHiddenSecrets(value as object);
    Object.defineProperty(copy, name, { value: shown, enumerable: name !== 'key', writable: true, configurable: true });
  }
  return copy as Result;
}

/**
 * Turns colours off for later output of this process, whatever the environment says.
 * @returns a function that restores the environment for a host or a child process
 */
export function turnColorsOff(env: NodeJS.ProcessEnv): () => void {
  const before = { NO_COLOR: env['NO_COLOR'], FORCE_COLOR: env['FORCE_COLOR'] };
  env['NO_COLOR'] = '1';
  // It would take precedence.
  delete env['FORCE_COLOR'];
  return () => {
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) delete env[name];
      else env[name] = value;
    }
  };
}

/** The topic of all our commands in a host, except `serve`. */
const TOPIC = 'apikey:';

/** The part of oclif's configuration that determines the names of commands. */
type Names = Pick<Config, 'bin' | 'topicSeparator' | 'findCommand'>;

/** The shown id of one of our commands: in our own program, `login` for `apikey:login`. */
export function shortestId(config: Pick<Config, 'findCommand'>, id: string): string {
  const short = id.startsWith(TOPIC) ? id.slice(TOPIC.length) : id;
  return config.findCommand(short)?.pluginName === 'svc-api' ? short : id;
}

/**
 * A command as typed in the CLI that runs it, such as `svc-api apikey list`, or `acme apikey:list` in a host. An empty
 * one is the name of the CLI.
 * @param id as in hosts
 */
export function commandText(config: Names, id: string): string {
  if (id === '') return config.bin;
  return `${config.bin} ${shortestId(config, id).replaceAll(':', config.topicSeparator)}`;
}

/** A text with commands such as "svc-api apikey doctor" renamed for the CLI that runs it. */
export function withNamesOf(config: Names, text: string): string {
  return text.replaceAll(/"svc-api ((?:apikey|serve)(?: [a-z]+)*)(?=[" ])/g, (_, line: string) => {
    const words = line.split(' ');
    const isCommand = (count: number) => config.findCommand(words.slice(0, count).join(':')) !== undefined;
    const count = words.findLastIndex((_word, index) => isCommand(index + 1)) + 1 || Math.min(words.length, 2);
    return [`"${commandText(config, words.slice(0, count).join(':'))}`, ...words.slice(count)].join(' ');
  });
}

/** `1 entry`, `2 entries`. */
export function formatCount(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** The first of some texts, and the number of further ones. */
export function firstOf(texts: readonly string[], most: number): readonly string[] {
  return texts.length > most ? [...texts.slice(0, most), `${texts.length - most} more`] : texts;
}

/** The gap between two columns. */
export const GAP = '  ';

/** The space that a column of a table needs, in columns of the terminal. */
interface ColumnSpace {
  readonly natural: number;
  /** The width to which longer cells can be shortened. */
  readonly least: number;
  /** The order in which columns are left out if space is short: lowest first, and those without a number last. */
  readonly leaves?: number | undefined;
}

/** The widths of columns side by side within a total width; 0 for those that are left out. */
export function layOut(columns: readonly ColumnSpace[], total: number): number[] {
  const shown = new Set(columns);
  const room = () => total - GAP.length * (shown.size - 1);
  const fits = (level: number) => sum(Array.from(shown, (column) => widthAt(column, level))) <= room();
  for (const column of inOrderOfLeaving(columns)) {
    if (shown.size === 1 || fits(0)) break;
    shown.delete(column);
  }
  // All columns get the same width, unless they need less or have a larger minimum.
  let level = Math.max(0, room());
  while (level > 0 && !fits(level)) level -= 1;
  const widths = columns.map((column) => (shown.has(column) ? Math.min(widthAt(column, level), room()) : 0));
  let spare = room() - sum(widths);
  return widths.map((width, index) => {
    if (spare <= 0 || width === 0 || width >= columns[index]!.natural) return width;
    spare -= 1;
    return width + 1;
  });
}

function widthAt({ natural, least }: ColumnSpace, level: number): number {
  return Math.min(natural, Math.max(least, level));
}

/** The columns in the order in which they are left out; of equal ones, the last goes first. */
function inOrderOfLeaving(columns: readonly ColumnSpace[]): ColumnSpace[] {
  return columns.toReversed().toSorted((a, b) => (a.leaves ?? Infinity) - (b.leaves ?? Infinity) || 0);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

export interface Column {
  /** Its title on a terminal. */
  readonly title: string;
  /** The width to which its cells can be shortened on a terminal. By default, they are not. */
  readonly least?: number;
  /** The order in which columns are left out on a narrow terminal: lowest first, and those without a number last. */
  readonly leaves?: number;
}

type TableText = (rows: readonly (readonly string[])[]) => string;

/**
 * A table without colours or boxes. On a terminal its columns are aligned below a head, and shortened or left out to
 * fit the width. Otherwise a row is a line with tabs between the cells, which are never shortened, so that `cut` and
 * `awk` can read it.
 */
export async function openTable(
  columns: readonly Column[],
  { isTerminal, columns: total }: Pick<Terminal, 'isTerminal' | 'columns'>,
): Promise<TableText> {
  if (!isTerminal) return (rows) => rows.map((row) => row.map(plain).join('\t')).join('\n');
  const { shorten, widthOf } = await import('./wrapped.ts');
  const head = columns.map(({ title }) => title);
  const natural = head.map(widthOf);
  let isFirst = true;
  return (rows) => {
    const lines = [...(isFirst ? [head] : []), ...rows.map((row) => row.map(plain))];
    isFirst = false;
    for (const line of lines)
      for (const [index, cell] of line.entries()) natural[index] = Math.max(natural[index]!, widthOf(cell));
    const widths = layOut(
      columns.map(({ least = Infinity, leaves }, index) => ({ natural: natural[index]!, least, leaves })),
      total,
    );
    const fit = (cell: string, index: number) => {
      const text = shorten(cell, widths[index]!);
      return text + ' '.repeat(widths[index]! - widthOf(text));
    };
    const isShown = (_: string, index: number) => widths[index]! > 0;
    return lines.map((line) => line.map(fit).filter(isShown).join(GAP).trimEnd()).join('\n');
  };
}

/** The titles of the columns that do not fit a width, even if all others are shortened. */
export function titlesLeftOut(columns: readonly Column[], total: number): string[] {
  const widths = layOut(
    columns.map(({ least = Infinity, leaves }) => ({ natural: least, least, leaves })),
    total,
  );
  return columns.filter((_, index) => widths[index] === 0).map(({ title }) => title);
}

function plain(cell: string): string {
  return stripVTControlCharacters(cell).replaceAll('\t', ' ');
}
