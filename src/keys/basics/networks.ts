import { BlockList, isIP, SocketAddress } from 'node:net';

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

/** A network's address, the length of its prefix, and its family; undefined where the text is none. */
export function parseNetwork(text: string): [address: string, prefix: number, family: 'ipv4' | 'ipv6'] | undefined {
  const [, address = '', length] = /^([\da-f.:]+)(?:\/(\d{1,3}))?$/i.exec(text) ?? [];
  const family = isIP(address);
  const most = family === 4 ? 32 : 128;
  const prefix = length === undefined ? most : Number(length);
  return family === 0 || prefix > most ? undefined : [address, prefix, family === 4 ? 'ipv4' : 'ipv6'];
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
  const plain = family === 4 ? address : new SocketAddress({ address, family: 'ipv6' }).address;
  const mapped = family === 4 ? plain : MAPPED.test(plain) ? plain.replace(/^.*:/, '') : undefined;
  if (mapped !== undefined) {
    const [a, b, c, d] = mapped.split('.').map((octet) => Number(octet).toString(16).padStart(2, '0'));
    return `0000${a}${b}00${c}00${d}`;
  }
  const [before = '', after = ''] = plain.split('::');
  const [first, last] = [before, after].map((part) => (part === '' ? [] : part.split(':')));
  const zeros = plain.includes('::') ? Array<string>(8 - first!.length - last!.length).fill('0') : [];
  return [...first!, ...zeros, ...last!]
    .slice(0, 4)
    .map((group) => group.padStart(4, '0'))
    .join('');
}
