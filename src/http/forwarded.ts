import { isIP, SocketAddress } from 'node:net';

/** A hop that a proxy has noted: an address, or undefined where it is none. */
type Hop = string | undefined;

/** `192.0.2.1`, `192.0.2.1:80`, `[2001:db8::1]` or `[2001:db8::1]:80`: the part without the port. */
const NODE = /^(?:\[([\da-f:.]+)\]|([\d.]+))(?::\d{1,5})?$/i;
/** One parameter after another, without a gap. */
const PARAMETER = /\s*([!#$%&'*+.^_`|~\da-z-]+)=(?:"([^"\\]*)"|([!#$%&'*+.^_`|~\da-z-]+))\s*(?:;|$)/giy;

/** The hops in `X-Forwarded-For`, the nearest first. */
export function* hopsInXForwardedFor(header: string): Generator<Hop> {
  for (const entry of entriesOf(header)) yield readNode(entry);
}

/** The hops in `Forwarded` (RFC 7239), the nearest first. Those that hide behind a word are undefined. */
export function* hopsInForwarded(header: string): Generator<Hop> {
  for (const entry of entriesOf(header)) yield readElement(entry);
}

/**
 * The entries of a list, from the end: what stands before an entry is the client's to write, and must not change how
 * that entry is read. Empty ones are left out (RFC 9110, section 5.6.1).
 */
function* entriesOf(list: string): Generator<string> {
  let end = list.length;
  let inQuotes = false;
  for (let index = list.length - 1; index >= -1; index -= 1) {
    if (list[index] === '"') inQuotes = !inQuotes;
    if (index >= 0 && (list[index] !== ',' || inQuotes)) continue;
    const entry = list.slice(index + 1, end).trim();
    if (entry !== '') yield entry;
    end = index;
  }
}

function readElement(element: string): Hop {
  const parameters = Array.from(element.matchAll(PARAMETER));
  const [node, ...others] = parameters.filter(([, name]) => name!.toLowerCase() === 'for');
  const isWhole = parameters.map(([text]) => text).join('') === element;
  return isWhole && node && others.length === 0 ? readNode(node[2] ?? node[3]!) : undefined;
}

/** The address of a node, in the form that `Socket.remoteAddress` has. IPv6 may stand without brackets. */
function readNode(node: string): Hop {
  const [, inBrackets, v4] = NODE.exec(node) ?? [];
  const address = inBrackets ?? v4 ?? node;
  const family = isIP(address);
  if (family === 4) return inBrackets === undefined ? address : undefined;
  if (family !== 6 || address.includes('%')) return undefined;
  return plainAddress(new SocketAddress({ address, family: 'ipv6' }).address);
}

/** How a server that listens on `::` sees IPv4 addresses: as parts of IPv6. */
const MAPPED = /^::ffff:(?=\d+\.)/;

/** An address, as IPv4 if it is IPv4 that is mapped into IPv6. */
export function plainAddress(address: string): string {
  return address.startsWith('::ffff:') ? address.replace(MAPPED, '') : address;
}
