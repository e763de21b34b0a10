import { printableJson } from '../keys/text.ts';

/** A JSON document for stdout. */
export function jsonText(json: object): string {
  return `${printableJson(JSON.stringify(json, null, 2))}\n`;
}

/** Whether a flag without a value is among the arguments as they were typed. */
export function hasFlag(argv: readonly string[], flag: string): boolean {
  const index = argv.indexOf(flag);
  const end = argv.indexOf('--');
  return index >= 0 && (end < 0 || index < end);
}
