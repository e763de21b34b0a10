import { type DocumentPath, type DocumentReader, isRecord } from '../keys/document.ts';
import { nearest } from '../keys/nearest.ts';
import { Networks, parseNetwork } from '../keys/networks.ts';
import { printable } from '../keys/text.ts';
import { type CredentialPlace, problemOfHeader } from '../keys/credential-places.ts';
import { DEFAULT_CONFIG } from './config.ts';

/** Reads where a key may stand in a request. */
export function readCredentials(reader: DocumentReader, value: unknown): readonly CredentialPlace[] {
  if (value === undefined) return DEFAULT_CONFIG.credentials;
  const items = reader.list(value, ['credentials']);
  if (Array.isArray(value) && items.length === 0)
    reader.report(
      ['credentials'],
      'The list "credentials" is empty, so that no key could be sent. Leave it out for bearer.',
    );
  const seen = new Set<string>();
  return items.flatMap((item, index) => {
    const path = ['credentials', index];
    const place = readPlace(reader, item, path);
    if (place === undefined) return [];
    const name = typeof place === 'string' ? place : `the header ${place.header}`;
    if (seen.has(name)) reader.report(path, `${name} is listed more than once.`);
    seen.add(name);
    return [place];
  });
}

function readPlace(reader: DocumentReader, item: unknown, path: DocumentPath): CredentialPlace | undefined {
  if (item === 'bearer' || item === 'basic') return item;
  // Of other fields, all that is possible is said below.
  const meant = isRecord(item) ? Object.keys(item).flatMap((field) => nearest(field, ['header'])) : [];
  if (!isRecord(item) || meant.length === 0) {
    const shown = typeof item === 'string' ? `"${printable(item)}" is no place for a key. Write` : 'Write';
    reader.report(path, `${shown} bearer, basic, or { header: X-Api-Key }.`);
    return undefined;
  }
  const { header } = reader.knownFields(item, path, ['header']);
  const name = reader.text(header, [...path, 'header']);
  if (name === undefined) return undefined;
  const problem = problemOfHeader(name);
  if (problem === undefined) return { header: name.toLowerCase() };
  reader.report([...path, 'header'], `The header "${printable(name)}" cannot hold a key: it ${problem}.`);
  return undefined;
}

/** Reads whose forwarded headers are believed. */
export function readTrust(reader: DocumentReader, value: unknown): Networks {
  if (value === undefined) return DEFAULT_CONFIG.trust;
  return new Networks(
    reader.textsOf(value, ['trust'], (text, at) =>
      parseNetwork(text)
        ? text
        : reader.report(at, `"${printable(text)}" is not a network: write it as 10.0.0.0/8 or 2001:db8::/32.`),
    ),
  );
}
