import { pairsOf } from './header-names.ts';

/** A reason phrase (RFC 9112, section 4). */
const REASON = /^[\t -~\x80-\xff]*$/;

/** What may be passed on of a reason phrase. Nobody needs one. */
export function reasonOf(message: string): string {
  return REASON.test(message) ? message : '';
}

/**
 * The head of an answer as text, to be sent as Latin-1: for informational ones, of which Node cannot send all.
 * @param headers names and values in turn
 */
export function headText(status: number, message: string, headers: readonly string[]): string {
  const lines = pairsOf(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${reasonOf(message)}\r\n${lines.join('')}\r\n`;
}
