import type { Canonical } from './canonical.ts';

/** The most octets of a name (RFC 1035, 2.3.4), without its root dot. */
const MAX_LENGTH = 253;
const PORT = /:\d{0,5}$/;
const LABELS = /^[a-z\d_-]+(?:\.[a-z\d_-]+)*$/;
/** What the WHATWG URL standard takes for an IPv4 address, in whatever notation. */
const ENDS_IN_NUMBER = /(?:^|\.)(?:\d+|0x[\da-f]*)$/;
const INTERNATIONAL = /^[\p{L}\p{M}\p{N}._-]+$/u;
const IPV6 = /^\[[\da-f:.]+\]$/i;

/**
 * A host as it is compared: in lower case, international names by IDNA, IPv6 addresses in brackets and compressed.
 * The root dot is dropped, and so is the port, whatever it is: a client may write any port into its Host header, and
 * servers choose their site by the name alone. If ports were compared, `Host: admin.example.org:81` would escape from
 * the routes of `admin.example.org`.
 */
export function canonicalHost(text: string): Canonical {
  // A port and a root dot come on top. The bound also keeps IDNA from long texts.
  if (text.length > MAX_LENGTH + ':65535.'.length) return { refusal: 'the host is too long' };
  const host = text.replace(PORT, '').replace(/\.$/, '').toLowerCase();
  if (host === '') return { refusal: 'the host is empty' };
  const isPlain = LABELS.test(host) && !ENDS_IN_NUMBER.test(host);
  const name = isPlain ? host : nameByUrl(host);
  if (name === undefined) return { refusal: 'the host is not a name or an address' };
  return name.length > MAX_LENGTH ? { refusal: 'the host is too long' } : { value: name };
}

function nameByUrl(host: string): string | undefined {
  // Checked before, because URL cuts a text at characters such as "/" and drops others, such as tabs.
  if (!INTERNATIONAL.test(host) && !IPV6.test(host)) return undefined;
  const name = URL.parse(`http://${host}`)?.hostname;
  if (name === undefined || name.startsWith('[')) return name;
  // 127.1 and 0x7f000001 are addresses only for some.
  if (ENDS_IN_NUMBER.test(name) && name !== host) return undefined;
  return LABELS.test(name) ? name : undefined;
}
