import { BlockList, isIP, SocketAddress } from 'node:net';
import { printable } from './text.ts';

/** An IPv4 address mapped into IPv6 (RFC 4291, section 2.5.5.2), in its short form. */
const MAPPED = /^::ffff:\d+\./;

/** The loopback addresses. */
export const LOOPBACK: readonly string[] = ['127.0.0.0/8', '::1/128'];

/** A list of networks, such as `10.0.0.0/8` and `2001:db8::/32`; a plain address is a network of its own. */
export class Networks {
  /** As they were written. */
  readonly texts: readonly string[];
  readonly #lists = { ipv4: new BlockList(), ipv6: new BlockList() };

  /** @throws RangeError naming the first text that is not a network */
  constructor(texts: readonly string[]) {
    this.texts = texts;
    for (const text of texts) {
      const network = parseNetwork(text);
      if (!network) throw new RangeError(`"${text}" is not a network: write it as 10.0.0.0/8 or 2001:db8::/32.`);
      this.#lists[network[2]].addSubnet(...network);
    }
  }

  /**
   * True if an address is in one of the networks. IPv4 addresses mapped into IPv6 count as IPv4, and none of them is in
   * an IPv6 network, not even in `::/0`.
   */
  includes(address: string): boolean {
    const { ipv4, ipv6 } = this.#lists;
    const family = isIP(address);
    if (family === 4) return ipv4.check(address, 'ipv4');
    if (family === 0) return false;
    const socketAddress = new SocketAddress({ address, family: 'ipv6' });
    return (MAPPED.test(socketAddress.address) ? ipv4 : ipv6).check(socketAddress);
  }
}

type Family = 'ipv4' | 'ipv6';

/** A network's address, the length of its prefix, and its family; undefined for malformed text. */
export function parseNetwork(text: string): [address: string, prefix: number, family: Family] | undefined {
  const [, address = '', length] = /^([\da-f.:]+)(?:\/(\d{1,3}))?$/i.exec(text) ?? [];
  const family = isIP(address);
  const most = family === 4 ? 32 : 128;
  const prefix = length === undefined ? most : Number(length);
  return family === 0 || prefix > most ? undefined : [address, prefix, family === 4 ? 'ipv4' : 'ipv6'];
}

/** The problem with a network that is to be trusted; undefined if there is none. */
export function invalidNetwork(text: string): string | undefined {
  if (!parseNetwork(text)) return `"${printable(text)}" is not a network: write it as 10.0.0.0/8 or 2001:db8::/32.`;
  const read = readNetwork(text);
  return 'problem' in read ? read.problem : undefined;
}

/** A network in its stored form, with the numbers of its address. */
export interface SplitNetwork {
  parts: number[];
  prefix: number;
}

/** How many low bits of a part are outside the network's prefix. */
export function bitsBeyond({ parts, prefix }: SplitNetwork, index: number): number {
  const bits = parts.length === 4 ? 8 : 16;
  return bits - Math.min(Math.max(prefix - index * bits, 0), bits);
}

/** A network in its stored form: short, in lower case, and without a length if it is a single address. */
export function readNetwork(text: string): { network: string } | { problem: string } {
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

/** An address in its short form (RFC 5952, section 4). IPv4 has no other. */
function shortForm(parts: readonly number[]): string {
  if (parts.length === 4) return parts.join('.');
  const address = parts.map((part) => part.toString(16)).join(':');
  return new SocketAddress({ address, family: 'ipv6' }).address;
}

const COLON = 58;

/** The four or eight parts of a valid address. Read digit by digit, since intermediate strings make long lists slow. */
export function partsOf(address: string, family: Family): number[] {
  if (family === 'ipv4') return address.split('.').map(Number);
  if (address.includes('.')) return partsOf(withoutDots(address), family);
  const parts: number[] = [];
  let [start, value, gap] = [0, 0, 8];
  for (let at = 0; at <= address.length; at += 1) {
    const code = at < address.length ? address.charCodeAt(at) : COLON;
    if (code !== COLON) value = value * 16 + (code < COLON ? code - 48 : (code | 32) - 87);
    else {
      if (at > start) parts.push(value);
      else gap = parts.length;
      [start, value] = [at + 1, 0];
    }
  }
  if (parts.length < 8) parts.splice(gap, 0, ...Array<number>(8 - parts.length).fill(0));
  return parts;
}

/** An IPv6 address without the dotted notation of IPv4 at its end. */
function withoutDots(address: string): string {
  const start = address.lastIndexOf(':') + 1;
  const [a, b, c, d] = address.slice(start).split('.').map(Number);
  return `${address.slice(0, start)}${(a! * 256 + b!).toString(16)}:${(c! * 256 + d!).toString(16)}`;
}

/** True for the parts of an IPv4 address mapped into IPv6 (RFC 4291, section 2.5.5.2). */
export function isMapped(parts: readonly number[]): boolean {
  return parts.length === 8 && parts[5] === 0xffff && parts.findIndex((part) => part !== 0) === 5;
}

/** The IPv4 address in the last 32 bits of an IPv6 address. */
export function octetsOf(parts: readonly number[]): number[] {
  return parts.slice(-2).flatMap((part) => [part >> 8, part & 255]);
}

/** Like `octetsOf`, as text. */
export function embeddedIpv4(address: string): string {
  return octetsOf(partsOf(address, 'ipv6')).join('.');
}

/** True if the host of a URL is this machine. */
export function isLoopbackHost(hostname: string): boolean {
  const address = hostname.replace(/^\[(.*)\]$/, '$1');
  return address === 'localhost' || new Networks(LOOPBACK).includes(address);
}
