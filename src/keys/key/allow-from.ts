import type { Issue } from '../errors.ts';
import { isMapped, octetsOf, parseNetwork, partsOf } from '../networks.ts';
import { printable } from '../text.ts';

/** The most networks that a key may be used from. */
export const MAX_NETWORKS = 100;

/**
 * Parses networks. Each gets the form in which it is stored: short, in lower case, and without the length of a plain
 * address. Duplicates are dropped; what is none, or is ambiguous, is an issue.
 */
export function parseNetworks(texts: readonly string[]): { values: string[]; issues: Issue[] } {
  const values = new Set<string>();
  const issues: Issue[] = [];
  for (const text of texts) {
    const read = readNetwork(text.trim());
    if ('problem' in read) issues.push({ code: 'NETWORK_INVALID', message: read.problem });
    else values.add(read.network);
  }
  if (values.size > MAX_NETWORKS)
    issues.push({
      code: 'NETWORK_INVALID',
      message: `${values.size} networks are more than ${MAX_NETWORKS}, which is the most.`,
    });
  return { values: [...values], issues };
}

/** The issues with the networks that a key may be used from, of which there must be one at least. */
export function validateNetworks(texts: readonly string[]): Issue[] {
  if (texts.length > 0) return parseNetworks(texts).issues;
  return [
    { code: 'NETWORK_INVALID', message: 'The list of networks is empty. Name one, or leave it out for anywhere.' },
  ];
}

/** The networks in a validated request; null for anywhere. */
export function readAllowFrom(texts: readonly string[] | null | undefined): string[] | null {
  return texts ? parseNetworks(texts).values : null;
}

/** Whether each of some networks lies within one of others. */
export function areWithin(inner: readonly string[], outer: readonly string[]): boolean {
  const others = outer.map(splitNetwork);
  return inner.map(splitNetwork).every((network) => others.some((other) => isWithin(network, other)));
}

/** A network in the form in which it is stored, with the numbers of its address. */
interface SplitNetwork {
  parts: number[];
  prefix: number;
}

function splitNetwork(text: string): SplitNetwork {
  const [address, prefix, family] = parseNetwork(text)!;
  return { parts: partsOf(address, family), prefix };
}

function isWithin({ parts, prefix }: SplitNetwork, other: SplitNetwork): boolean {
  return (
    other.parts.length === parts.length &&
    other.prefix <= prefix &&
    parts.every((part, index) => (part ^ other.parts[index]!) >> bitsBeyond(other, index) === 0)
  );
}

/** How many bits of a part are beyond the prefix. */
function bitsBeyond({ parts, prefix }: SplitNetwork, index: number): number {
  const bits = parts.length === 4 ? 8 : 16;
  return bits - Math.min(Math.max(prefix - index * bits, 0), bits);
}

function readNetwork(text: string): { network: string } | { problem: string } {
  const parsed = parseNetwork(text);
  const shown = () => `"${printable(text)}"`;
  if (text === '') return { problem: 'A network is empty. Write it as 10.0.0.0/8 or 2001:db8::/32.' };
  if (!parsed) return { problem: `${shown()} is not a network. Write it as 10.0.0.0/8 or 2001:db8::/32.` };
  const [written, prefix, family] = parsed;
  const parts = partsOf(written, family);
  if (isMapped(parts)) return { problem: `${shown()} is IPv4 within IPv6. Write the IPv4 network alone.` };
  const first = parts.map((part, index) => {
    const beyond = bitsBeyond({ parts, prefix }, index);
    return (part >> beyond) << beyond;
  });
  const network = prefix === (family === 'ipv4' ? 32 : 128) ? shortForm(first) : `${shortForm(first)}/${prefix}`;
  if (first.every((part, index) => part === parts[index])) return { network };
  const address = shortForm(parts);
  return {
    problem: `${shown()} has bits beyond its first ${prefix}. Write ${network}, or ${address} for the address.`,
  };
}

/**
 * An address in its short form, the only one that IPv4 has (RFC 5952, section 4): the first of the longest runs of
 * zeros is left out, and one of IPv6 that has two parts after nothing else ends like an IPv4 address.
 */
function shortForm(parts: readonly number[]): string {
  if (parts.length === 4) return parts.join('.');
  let [start, length] = [0, 0];
  for (let from = 0; from < 8; from += 1) {
    let to = from;
    while (parts[to] === 0) to += 1;
    if (to - from > length) [start, length] = [from, to - from];
    from = to;
  }
  const groups = parts.map((part) => part.toString(16));
  if (length < 2) return groups.join(':');
  if (start === 0 && length === 6) return `::${octetsOf(parts).join('.')}`;
  return `${groups.slice(0, start).join(':')}::${groups.slice(start + length).join(':')}`;
}
