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
