import { hash } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** Returns `size` bytes from a cryptographically secure source. */
export type RandomBytes = (size: number) => Uint8Array;

/** A new secret, with its stored parts. */
export interface Secret {
  /** The whole secret. Shown once, never stored. */
  text: string;
  /** The 12 characters that identify it in logs and lists. */
  publicId: string;
  /** The stored form: see `digestSecret`. */
  digest: string;
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const PUBLIC_ID_LENGTH = 12;
const BODY_BYTES = 32;
const BODY_LENGTH = 43;
/** The length of the checksum at the end of a secret, over all characters before it. */
export const CHECKSUM_LENGTH = 6;
const IMPORTED = 'imported-';
const SECRETLESS = 'person-';
const OWN_PREFIX = /^([0-9A-Za-z]{2,12})_([0-9A-Za-z]{12})_…$/;
const OTHER_PREFIX = new RegExp(`^(?:${IMPORTED}|${SECRETLESS})[0-9A-Za-z]{12}$`);

/** The start of secrets where an installation has no other: `svc_…`. */
export const DEFAULT_PREFIX = 'svc';
const PREFIX = /^[0-9A-Za-z]{2,12}$/;
/** The most characters of the start of a secret. */
export const MAX_PREFIX_LENGTH = 12;
/** The length of a secret after its start, from the underscore on. */
export const SECRET_REST_LENGTH = 1 + PUBLIC_ID_LENGTH + 1 + BODY_LENGTH + CHECKSUM_LENGTH;

const SECRET_PART_LENGTH = BODY_LENGTH + CHECKSUM_LENGTH;
const REST = `_([0-9A-Za-z]{${PUBLIC_ID_LENGTH}})_[0-9A-Za-z]{${SECRET_PART_LENGTH}}`;
const ANY_FORM = new RegExp(`^([0-9A-Za-z]{2,12})${REST}$`);

/** A regular expression source for secrets with one of these starts. The checksum is verified separately. */
export function secretPattern(prefixes: readonly string[]): string {
  const start = prefixes.length === 1 ? prefixes[0] : `(?:${prefixes.join('|')})`;
  return `${start}${REST.replace('(', '').replace(')', '')}`;
}

/** The starts of secrets in this process, whose mistyped and truncated secrets are recognised as well. */
const known = new Set<string>([DEFAULT_PREFIX]);
let forms = formsOf();

function formsOf() {
  const starts = [...known];
  return {
    own: new RegExp(`^${secretPattern(starts)}$`),
    shown: new RegExp(
      `_([0-9A-Za-z]{12})_(?:(?<=(?:${starts.join('|')})_.{12}_)[0-9A-Za-z]+|[0-9A-Za-z]{${BODY_LENGTH},})`,
      'g',
    ),
  };
}

/** Recognises secrets with this start from now on. */
export function knowPrefix(prefix: string): void {
  if (known.has(prefix)) return;
  known.add(prefix);
  forms = formsOf();
}

/** The problem with the start of secrets; undefined if there is none. */
export function invalidPrefix(prefix: string): string | undefined {
  return PREFIX.test(prefix) ? undefined : `"${prefix}" is not a prefix: use 2 to 12 letters and digits.`;
}

/**
 * Creates a secret: `<prefix>_<id>_<secret><check>`, all base62, with 12 characters of public id, 43 of secret (32
 * random bytes) and 6 of CRC-32 over everything before them.
 */
export function createSecret(randomBytes: RandomBytes, prefix: string = DEFAULT_PREFIX): Secret {
  const id = randomBase62(PUBLIC_ID_LENGTH, randomBytes);
  const body = encodeBase62(BigInt(`0x${Buffer.from(randomBytes(BODY_BYTES)).toString('hex')}`), BODY_LENGTH);
  const unchecked = `${prefix}_${id}_${body}`;
  const text = unchecked + computeChecksum(unchecked);
  return { text, publicId: publicIdOf(prefix, id), digest: digestSecret(text) };
}

/** The public id begins with a prefix that is not the default one, so that it can be shown. */
function publicIdOf(prefix: string, id: string): string {
  return prefix === DEFAULT_PREFIX ? id : `${prefix}_${id}`;
}

/** The start of a secret with this public id. */
export function prefixIn(publicId: string): string {
  return publicId.includes('_') ? publicId.slice(0, publicId.indexOf('_')) : DEFAULT_PREFIX;
}

/** The public id of a secret in our own format; undefined if its form or checksum is wrong. */
export function readSecret(text: string): { publicId: string } | undefined {
  const [, prefix, id] = ANY_FORM.exec(text) ?? [];
  if (prefix === undefined || id === undefined) return undefined;
  if (computeChecksum(text.slice(0, -CHECKSUM_LENGTH)) !== text.slice(-CHECKSUM_LENGTH)) return undefined;
  return { publicId: publicIdOf(prefix, id) };
}

/** True for the form of secrets with a known start, regardless of the checksum. */
export function hasOwnForm(text: string): boolean {
  return forms.own.test(text);
}

/** The stored digest of a secret: its SHA-256 in base64url, the shortest encoding. */
export function digestSecret(text: string): string {
  return hash('sha256', text, 'base64url');
}

/**
 * The text shown in place of a secret: its start and id, as `svc_<id>_…`; `imported-<id>` for a secret in another
 * format; `person-<id>` for a person, who has none.
 */
export function prefixOf(publicId: string): string {
  return isImportedId(publicId) || isSecretlessId(publicId)
    ? publicId
    : `${prefixIn(publicId)}_${publicId.split('_').at(-1)}_…`;
}

/** The public id in a prefix; undefined if the text is not a prefix. */
export function publicIdOfPrefix(prefix: string): string | undefined {
  const [, start, id] = OWN_PREFIX.exec(prefix) ?? [];
  return start !== undefined && id !== undefined ? publicIdOf(start, id) : OTHER_PREFIX.exec(prefix)?.[0];
}

/** True for the public id of a secret in another format. */
export function isImportedId(publicId: string): boolean {
  return publicId.startsWith(IMPORTED);
}

/** Generates a public id for a secret in another format, which contains none. */
export function createImportedId(randomBytes: RandomBytes): string {
  return IMPORTED + randomBase62(PUBLIC_ID_LENGTH, randomBytes);
}

/** Generates the public id of a key without a secret, which is that of a person. */
export function createSecretlessId(randomBytes: RandomBytes): string {
  return SECRETLESS + randomBase62(PUBLIC_ID_LENGTH, randomBytes);
}

/** True for the public id of a key without a secret. */
export function isSecretlessId(publicId: string): boolean {
  return publicId.startsWith(SECRETLESS);
}

/** Replaces every secret in a text with its prefix, including truncated and mistyped ones with a known start. */
export function redactSecrets(text: string): string {
  return text.replace(forms.shown, '_$1_…');
}

/** True if a text holds a secret, even a truncated or mistyped one. */
export function holdsSecret(text: string): boolean {
  return redactSecrets(text) !== text;
}

function computeChecksum(text: string): string {
  return encodeBase62(BigInt(crc32(text)), CHECKSUM_LENGTH);
}

/** The digits that fit safely into a number: dividing a long BigInt costs the same for one digit as for several. */
const DIGITS = 8;
const DIGITS_RANGE = 62n ** BigInt(DIGITS);

function encodeBase62(number: bigint, length: number): string {
  let text = '';
  for (let rest = number; text.length < length; rest /= DIGITS_RANGE) {
    let part = Number(rest % DIGITS_RANGE);
    for (let digit = 0; digit < DIGITS; digit += 1, part = Math.floor(part / 62)) text = BASE62[part % 62] + text;
  }
  return text.slice(-length);
}

/** Discards bytes from 248 on: 248 is a multiple of 62, so every character is equally likely. */
function randomBase62(length: number, randomBytes: RandomBytes): string {
  let text = '';
  while (text.length < length) {
    for (const byte of randomBytes(length)) if (byte < 248 && text.length < length) text += BASE62[byte % 62];
  }
  return text;
}

/** A place of a key in requests. Names of headers are in lower case. */
export type CredentialPlace = 'bearer' | 'basic' | { readonly header: string };

/** The default places of keys. */
export const BEARER_ALONE: readonly CredentialPlace[] = ['bearer'];

/** Names that proxies pass on: most drop names with underscores, and upstreams may confuse those with hyphens. */
const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

/** Headers that already have a meaning in HTTP, proxies, browsers or this program. */
const TAKEN: ReadonlySet<string> = new Set(
  (
    'accept age allow cache-control connection cookie date dnt early-data expect expires forwarded from host ' +
    'keep-alive location max-forwards origin path-info pragma priority range referer script-name server set-cookie ' +
    'te trailer transfer-encoding upgrade user-agent vary via warning www-authenticate x-http-method ' +
    'x-http-method-override x-method-override x-real-ip x-rewrite-url x-script-name'
  ).split(' '),
);
const TAKEN_FAMILIES = /^(?:accept|access-control|content|if|proxy|sec|x-auth|x-forwarded|x-original)-/;

/**
 * The problem with a header as the place of a key, as the end of a sentence; undefined if there is none.
 * @param name in any case
 */
export function problemOfHeader(name: string): string | undefined {
  const lower = name.toLowerCase();
  if (lower === 'authorization') return 'is read by "bearer" and "basic"';
  if (!NAME.test(lower)) return 'is not a name of letters, digits and single hyphens, such as X-Api-Key';
  if (TAKEN.has(lower) || TAKEN_FAMILIES.test(lower)) return 'has another meaning: choose one of your own';
  return undefined;
}

/**
 * Checks the places of keys, and lowercases the names of headers.
 * @throws RangeError naming the first issue
 */
export function checkCredentialPlaces(places: readonly CredentialPlace[]): readonly CredentialPlace[] {
  const checked = places.map(checkPlace);
  const texts = checked.map(textOf);
  const twice = texts.find((text, index) => texts.indexOf(text) !== index);
  if (twice !== undefined) throw new RangeError(`"${twice}" is listed twice as a place for credentials.`);
  if (checked.length === 0) throw new RangeError('There must be at least one place for credentials.');
  return checked;
}

function checkPlace(place: CredentialPlace): CredentialPlace {
  if (place === 'bearer' || place === 'basic') return place;
  const { header } = (place ?? {}) as { header?: unknown };
  if (typeof header !== 'string')
    throw new RangeError('A place for credentials is "bearer", "basic" or { header: "X-Api-Key" }.');
  const problem = problemOfHeader(header);
  if (problem) throw new RangeError(`The header "${header}" cannot hold credentials: it ${problem}.`);
  return { header: header.toLowerCase() };
}

function textOf(place: CredentialPlace): string {
  return typeof place === 'string' ? place : place.header;
}
