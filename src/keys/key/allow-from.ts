import { SocketAddress } from 'node:net';
import type { Issue } from '../errors.ts';
import { Networks, parseNetwork } from '../networks.ts';
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
  return inner.every((text) => {
    if (outer.includes(text)) return true;
    const [address, prefix] = parseNetwork(text)!;
    return outer.some((other) => parseNetwork(other)![1] <= prefix && new Networks([other]).includes(address));
  });
}

function readNetwork(text: string): { network: string } | { problem: string } {
  const parsed = parseNetwork(text);
  const shown = () => `"${printable(text)}"`;
  if (text === '') return { problem: 'A network is empty. Write it as 10.0.0.0/8 or 2001:db8::/32.' };
  if (!parsed) return { problem: `${shown()} is not a network. Write it as 10.0.0.0/8 or 2001:db8::/32.` };
  const [written, prefix, family] = parsed;
  const address = shortForm(written, family);
  if (/^::ffff:\d/.test(address)) return { problem: `${shown()} is IPv4 within IPv6. Write the IPv4 network alone.` };
  const first = firstAddress(address, prefix, family);
  const network = prefix === (family === 'ipv4' ? 32 : 128) ? first : `${first}/${prefix}`;
  if (first === address) return { network };
  return {
    problem: `${shown()} has bits beyond its first ${prefix}. Write ${network}, or ${address} for the address.`,
  };
}

/** The first address of the network that an address is in, in its short form. */
function firstAddress(address: string, prefix: number, family: 'ipv4' | 'ipv6'): string {
  const [base, bits] = family === 'ipv4' ? [10, 8] : [16, 16];
  const parts = family === 'ipv4' ? address.split('.') : partsOf(address);
  const masked = parts.map((part, index) => {
    const kept = Math.min(Math.max(prefix - index * bits, 0), bits);
    return (Number.parseInt(part, base) & ~((1 << (bits - kept)) - 1)).toString(base);
  });
  return shortForm(masked.join(family === 'ipv4' ? '.' : ':'), family);
}

/** An address in its short form, the only one that IPv4 has. */
function shortForm(address: string, family: 'ipv4' | 'ipv6'): string {
  return family === 'ipv4' ? address : new SocketAddress({ address, family }).address;
}

/** The eight parts of an IPv6 address in its short form. One that ends like an IPv4 address has other parts there. */
function partsOf(address: string): string[] {
  const hex = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...bytes: string[]) => {
    const [a, b, c, d] = bytes.slice(0, 4).map(Number) as [number, number, number, number];
    return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  });
  const [before = '', after = ''] = hex.split('::');
  const [first, last] = [before, after].map((part) => (part === '' ? [] : part.split(':')));
  return [...first!, ...Array<string>(8 - first!.length - last!.length).fill('0'), ...last!];
}
