import { SocketAddress } from 'node:net';
import type { Issue } from '../errors.ts';
import { parseNetwork } from '../networks.ts';
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
  return inner
    .map(splitNetwork)
    .every(({ parts, prefix, family }) =>
      others.some(
        (other) =>
          other.family === family &&
          other.prefix <= prefix &&
          firstParts(parts, other.prefix, family).every((part, index) => part === other.parts[index]),
      ),
    );
}

type Family = 'ipv4' | 'ipv6';

/** A network in the form in which it is stored, with the numbers of its address. */
function splitNetwork(text: string): { parts: number[]; prefix: number; family: Family } {
  const [address, prefix, family] = parseNetwork(text)!;
  return { parts: partsOf(address, family), prefix, family };
}

function readNetwork(text: string): { network: string } | { problem: string } {
  const parsed = parseNetwork(text);
  const shown = () => `"${printable(text)}"`;
  if (text === '') return { problem: 'A network is empty. Write it as 10.0.0.0/8 or 2001:db8::/32.' };
  if (!parsed) return { problem: `${shown()} is not a network. Write it as 10.0.0.0/8 or 2001:db8::/32.` };
  const [written, prefix, family] = parsed;
  const address = shortForm(written, family);
  if (/^::ffff:\d/.test(address)) return { problem: `${shown()} is IPv4 within IPv6. Write the IPv4 network alone.` };
  const parts = partsOf(address, family);
  const masked = firstParts(parts, prefix, family);
  const isFirst = masked.every((part, index) => part === parts[index]);
  const first = isFirst ? address : shortForm(writtenParts(masked, family), family);
  const network = prefix === (family === 'ipv4' ? 32 : 128) ? first : `${first}/${prefix}`;
  if (isFirst) return { network };
  return {
    problem: `${shown()} has bits beyond its first ${prefix}. Write ${network}, or ${address} for the address.`,
  };
}

/** The parts of the first address of the network that an address is in. */
function firstParts(parts: readonly number[], prefix: number, family: Family): number[] {
  const bits = family === 'ipv4' ? 8 : 16;
  return parts.map((part, index) => part & ~((1 << (bits - Math.min(Math.max(prefix - index * bits, 0), bits))) - 1));
}

function writtenParts(parts: readonly number[], family: Family): string {
  return family === 'ipv4' ? parts.join('.') : parts.map((part) => part.toString(16)).join(':');
}

/** An address in its short form, the only one that IPv4 has. */
function shortForm(address: string, family: Family): string {
  return family === 'ipv4' ? address : new SocketAddress({ address, family }).address;
}

/** The four or eight parts of an address. One of IPv6 that ends like an IPv4 address has other parts there. */
function partsOf(address: string, family: Family): number[] {
  if (family === 'ipv4') return address.split('.').map(Number);
  const [, start, end] = /^(.*:)(\d+(?:\.\d+){3})$/.exec(address.includes('.') ? address : '') ?? [];
  const [a = 0, b = 0, c = 0, d = 0] = end?.split('.').map(Number) ?? [];
  const hex = end === undefined ? address : `${start}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  const [before = '', after = ''] = hex.split('::');
  const [first, last] = [before, after].map((part) => (part === '' ? [] : part.split(':')));
  const zeros = Array<string>(8 - first!.length - last!.length).fill('0');
  return [...first!, ...zeros, ...last!].map((part) => Number.parseInt(part, 16));
}
