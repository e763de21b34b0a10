import { canonicalHost } from './canonical-host.ts';
import { canonicalPath, encodeInternational } from './canonical-path.ts';
import { type Canonical, canonicalMethod } from './canonical.ts';
import { printable } from '../keys/text.ts';

/** The most segments of a path. Whatever follows them recurses so deep. */
const MAX_SEGMENTS = 100;

/** A pattern in canonical form, or a sentence that says what is wrong with it and what to write. */
export type Pattern = { readonly value: string } | { readonly fault: string };

/** Parses a route's host: a name, `*.example.org` for one or more labels before it, or `*`. */
export function parseHostPattern(text: string): Pattern {
  const host = readHost(text);
  return 'value' in host ? host : { fault: `"${printable(text)}" is not a host for a route: ${host.refusal}.` };
}

/** Parses a route's path, whose segments are text, `*` for exactly one, or, at the end, `**` for the rest. */
export function parsePathPattern(text: string): Pattern {
  const path = readPath(text);
  return 'value' in path ? path : { fault: `"${printable(text)}" is not a path for a route: ${path.refusal}.` };
}

/** Parses one of a route's methods. */
export function parseMethod(text: string): Pattern {
  const method = canonicalMethod(text);
  return 'value' in method
    ? method
    : { fault: `"${printable(text)}" is not a method: write it in capital letters, as GET.` };
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
