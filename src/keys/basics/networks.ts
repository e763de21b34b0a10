import { BlockList, isIP, SocketAddress } from 'node:net';
import { printable } from './values.ts';

/** An address of IPv4 within IPv6 (RFC 4291, section 2.5.5.2), in its short form. */
const MAPPED = /^::ffff:\d+\./;

/** The addresses of a machine for itself. */
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
   * Whether an address is in one of the networks. IPv4 addresses that are mapped into IPv6 count as IPv4, and none of
   * these is in a network of IPv6, not even in `::/0`.
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

/** A network's address, the length of its prefix, and its family; undefined where the text is none. */
export function parseNetwork(text: string): [address: string, prefix: number, family: Family] | undefined {
  const [, address = '', length] = /^([\da-f.:]+)(?:\/(\d{1,3}))?$/i.exec(text) ?? [];
  const family = isIP(address);
  const most = family === 4 ? 32 : 128;
  const prefix = length === undefined ? most : Number(length);
  return family === 0 || prefix > most ? undefined : [address, prefix, family === 4 ? 'ipv4' : 'ipv6'];
}

/** What is wrong with a network whose word is believed; undefined if nothing is. */
export function invalidNetwork(text: string): string | undefined {
  if (!parseNetwork(text)) return `"${printable(text)}" is not a network: write it as 10.0.0.0/8 or 2001:db8::/32.`;
  const read = readNetwork(text);
  return 'problem' in read ? read.problem : undefined;
}

/** A network in the form in which it is stored, with the numbers of its address. */
export interface SplitNetwork {
  parts: number[];
  prefix: number;
}

/** How many of the bits of a part are not of the network. */
export function bitsBeyond({ parts, prefix }: SplitNetwork, index: number): number {
  const bits = parts.length === 4 ? 8 : 16;
  return bits - Math.min(Math.max(prefix - index * bits, 0), bits);
}

/** A network in the form in which it is stored: short, in lower case, and a plain address without a length. */
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

/** An address in its short form (RFC 5952, section 4), the only one that IPv4 has. */
function shortForm(parts: readonly number[]): string {
  if (parts.length === 4) return parts.join('.');
  const address = parts.map((part) => part.toString(16)).join(':');
  return new SocketAddress({ address, family: 'ipv6' }).address;
}

/** Where something comes from without a key, as what may be done only so often. */
export interface Source {
  /** A key, a terminal, or what one client has of addresses, in 16 hexadecimal digits: see `sourceOf`. */
  readonly source: string;
  /** The network that it is in, whose other addresses are easily had by the same people. */
  readonly network?: string | undefined;
}

/** How many digits a source of addresses has. */
export const SOURCE_DIGITS = 16;
/** How many digits of a source are its network: the /24 of IPv4, the /48 of IPv6. */
export const NETWORK_DIGITS = 12;
/** How many are what one holder may have of networks: the /16 of IPv4, the /32 of IPv6. */
export const WIDE_DIGITS = 8;

/**
 * An address as the source of requests: an IPv4 address, also one that is mapped into IPv6, or the /64 of an IPv6
 * address. Both have as many digits, so that networks are found by their start: 192.0.2.1 is `0000c00000020001`.
 * All whose address is not known are one source.
 */
export function sourceOf(address = ''): Required<Source> {
  const source = digitsOf(address.replace(/%.*$/, ''));
  return { source, network: source.slice(0, NETWORK_DIGITS) };
}

function digitsOf(address: string): string {
  const family = isIP(address);
  if (family === 0) return '';
  const parts = partsOf(address, family === 4 ? 'ipv4' : 'ipv6');
  const [a, b, c, d] = isMapped(parts) ? octetsOf(parts) : parts;
  const shown = family === 4 || isMapped(parts) ? [0, a! * 256 + b!, c!, d!] : [a!, b!, c!, d!];
  return shown.map((part) => part.toString(16).padStart(4, '0')).join('');
}

const COLON = 58;

/** The four or eight parts of an address that is one. Digit by digit: of a long list, texts in between take long. */
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

/** An address of IPv6 that ends like one of IPv4, as it is without that. */
function withoutDots(address: string): string {
  const start = address.lastIndexOf(':') + 1;
  const [a, b, c, d] = address.slice(start).split('.').map(Number);
  return `${address.slice(0, start)}${(a! * 256 + b!).toString(16)}:${(c! * 256 + d!).toString(16)}`;
}

/** Whether the parts are those of an IPv4 address within IPv6 (RFC 4291, section 2.5.5.2). */
function isMapped(parts: readonly number[]): boolean {
  return parts.length === 8 && parts[5] === 0xffff && parts.findIndex((part) => part !== 0) === 5;
}

/** The IPv4 address that an IPv6 address ends with. */
function octetsOf(parts: readonly number[]): number[] {
  return parts.slice(-2).flatMap((part) => [part >> 8, part & 255]);
}

/** The IPv4 address that an IPv6 address ends with, as text. */
export function embeddedIpv4(address: string): string {
  return octetsOf(partsOf(address, 'ipv6')).join('.');
}

/** Whether the host of a URL is this machine. */
export function isLoopbackHost(hostname: string): boolean {
  const address = hostname.replace(/^\[(.*)\]$/, '$1');
  return address === 'localhost' || new Networks(LOOPBACK).includes(address);
}

/** An origin of another scheme than the web's, such as that of an app in a web view, as its pages send it. */
export const OTHER_ORIGIN = /^(?!https?:)[a-z][a-z0-9+.-]*:\/\/[^\s/?#@*,\\]+$/;

/**
 * What is wrong with the origin of pages (RFC 6454, section 6.2), which is compared as browsers send it: scheme and
 * host in lower case, and the port if it is not the scheme's own. `*` stands for all. `null`, which every page in a
 * sandbox sends, is none.
 * @returns a sentence; undefined if nothing is wrong
 */
export function invalidOrigin(text: string): string | undefined {
  if (text === '*' || OTHER_ORIGIN.test(text)) return undefined;
  const origin = URL.canParse(text) && !text.includes('*') ? new URL(text).origin : 'null';
  if (origin === text && origin !== 'null') return undefined;
  const remedy = origin === 'null' ? 'Write it as https://app.example.org.' : `Browsers send ${printable(origin)}.`;
  return `"${printable(text)}" is not an origin. ${remedy}`;
}

/** Where a service is: a scheme, a host, and a path if it is under one. */
export const PUBLIC_URL = /^https?:\/\/[^/?#@\s]+(?:\/[A-Za-z0-9._~-]+)*$/;

/** What is wrong with the address under which clients are to reach a service; undefined if nothing is. */
export function invalidPublicUrl(text: string): string | undefined {
  // Issuers are compared character by character (RFC 8414, section 3.3).
  const isPlain = PUBLIC_URL.test(text) && URL.canParse(text) && new URL(text).href.replace(/\/$/, '') === text;
  if (isPlain) return undefined;
  const remedy = 'Write it as https://keys.example.org, without a slash at its end.';
  return `"${printable(text)}" is not an address of a service. ${remedy}`;
}

/**
 * What a feature asks of a store beside the keys themselves. The feature declares it beside its rules, and the store
 * implements it beside the feature's tables: neither keys nor transactions need know it.
 * @typeParam Reader what it asks at any time
 * @typeParam Writer the same in a transaction, in which it also changes something
 */
export interface Port<Reader, Writer extends Reader = Reader> {
  readonly name: string;
  /** For the compiler alone. */
  readonly sides?: { reader: Reader; writer: Writer };
}

/** Declares a port. @param name what it is for, such as `sessions` */
export function declarePort<Reader, Writer extends Reader = Reader>(name: string): Port<Reader, Writer> {
  return { name };
}

/** What features read. */
export interface ReadPorts {
  port<Reader, Writer extends Reader>(port: Port<Reader, Writer>): Reader;
}

/** What features read and write, in a transaction. */
export interface WritePorts {
  port<Reader, Writer extends Reader>(port: Port<Reader, Writer>): Writer;
}
