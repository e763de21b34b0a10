import type { OrRefusal } from '../keys/errors.ts';
import { printable } from '../keys/text.ts';
import {
  type Canonical,
  canonicalHost,
  canonicalMethod,
  canonicalPath,
  encodeInternational,
  type RequestParts,
} from './request.ts';

/** The most segments of a path. Whatever follows them recurses so deep. */
const MAX_SEGMENTS = 100;

/** A pattern in canonical form, or a sentence that says what is wrong with it and what to write. */
export type Pattern = OrRefusal<{ readonly value: string }>;

/** Parses a route's host: a name, `*.example.org` for one or more labels before it, or `*`. */
export function parseHostPattern(text: string): Pattern {
  const host = readHost(text);
  return 'value' in host ? host : { refusal: `"${printable(text)}" is not a host for a route: ${host.refusal}.` };
}

/** Parses a route's path, whose segments are text, `*` for exactly one, or, at the end, `**` for the rest. */
export function parsePathPattern(text: string): Pattern {
  const path = readPath(text);
  return 'value' in path ? path : { refusal: `"${printable(text)}" is not a path for a route: ${path.refusal}.` };
}

/** Parses one of a route's methods. */
export function parseMethod(text: string): Pattern {
  const method = canonicalMethod(text);
  return 'value' in method
    ? method
    : { refusal: `"${printable(text)}" is not a method: write it in capital letters, as GET.` };
}

function readHost(text: string): Canonical {
  if (text === '*') return { value: '*' };
  const isSuffix = text.startsWith('*.');
  const name = isSuffix ? text.slice(2) : text;
  if (name.includes('*')) return { refusal: '"*" stands alone, or first, as in *.example.org' };
  const isAddress = name.startsWith('[') || /^[\d.]+$/.test(name);
  if (isSuffix && isAddress) return { refusal: '"*." goes before a name, not an address' };
  if (/:\d*$/.test(name.replace(/^\[.*\]/, ''))) return { refusal: 'leave out the port, which is not compared' };
  const host = canonicalHost(name);
  return isSuffix && 'value' in host ? { value: `*.${host.value}` } : host;
}

function readPath(text: string): Canonical {
  if (!text.startsWith('/')) return { refusal: 'it must start with "/"' };
  if (text.includes('?')) return { refusal: 'leave out the query, which is not compared' };
  const segments = text.slice(1).split('/');
  if (segments.at(-1) === '') segments.pop();
  if (segments.length > MAX_SEGMENTS) return { refusal: `it has more than ${MAX_SEGMENTS} segments` };
  const rest = segments.indexOf('**');
  if (rest !== -1 && rest < segments.length - 1) return { refusal: '"**" may only come last' };
  let path = '';
  for (const segment of segments) {
    const read = readSegment(segment);
    if ('refusal' in read) return read;
    path += read.value;
  }
  return { value: path || '/' };
}

function readSegment(text: string): Canonical {
  if (text === '*' || text === '**') return { value: `/${text}` };
  if (text.includes('*')) return { refusal: '"*" stands for a whole segment; write %2A for the character' };
  return canonicalPath(encodeInternational(`/${text}/`));
}

/**
 * Reads a request as people write it. Its path stays as it is: `new URL` would resolve `..`, and more. What is not
 * ASCII is encoded, as browsers do.
 * @param url `https://example.org/path?query`, http or https
 */
export function parseRequest(method: string, url: string): OrRefusal<{ value: RequestParts }> {
  const parsed = parseMethod(method);
  if ('refusal' in parsed) return parsed;
  const [, authority, target = ''] = /^https?:\/\/([^/?#]*)(.*)$/is.exec(url) ?? [];
  const host = canonicalHost(authority ?? '');
  if ('refusal' in host) {
    const reason = authority === undefined ? '' : `: ${host.refusal}`;
    return { refusal: `"${printable(url, 200)}" is not a URL${reason}. Write it as https://example.org/path.` };
  }
  const path = target.startsWith('/') ? target : `/${target}`;
  return { value: { method, host: host.value, target: encodeInternational(path) } };
}
