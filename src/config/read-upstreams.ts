import { type DocumentPath, isRecord, printable } from '../keys/basics/index.ts';
import {
  parseUpstream,
  problemOfPassedHeader,
  problemOfSentHeader,
  type SentCredential,
  type Upstream,
} from '../routes/index.ts';
import type { ConfigReader } from './config-reader.ts';

export const UPSTREAM_FIELDS = ['url', 'send', 'query', 'basic', 'rewriteHost', 'passHeaders', 'ranges'] as const;
export const CREDENTIAL_FIELDS = ['file', 'scheme'] as const;
export const BASIC_FIELDS = ['user', 'password'] as const;
/** The names of upstreams, which stand in logs and metrics. */
const UPSTREAM_NAME = /^[a-z0-9](?:[a-z0-9_.-]{0,62}[a-z0-9])?$/i;
/** The most upstreams. */
export const MAX_UPSTREAMS = 1000;
/** The most headers that an upstream gets of who makes a request. */
const MAX_PASSED = 100;
const SCHEME = /^[a-z][a-z0-9-]*$/i;

/** Reads where requests are passed on to. */
export function readUpstreams(reader: ConfigReader, value: unknown): Upstream[] {
  if (value === undefined) return [];
  if (!isRecord(value))
    return reader.report(['upstreams'], 'The field "upstreams" must be a map of names to addresses.') ?? [];
  const names = Object.keys(value);
  return reader.firstOf(names, ['upstreams'], MAX_UPSTREAMS).flatMap((name) => {
    const path = ['upstreams', name];
    if (!UPSTREAM_NAME.test(name)) {
      const message = `"${printable(name)}" cannot name an upstream. Use letters and digits, and - _ . between them.`;
      reader.issues.push({ path, ofField: true, message });
    }
    const given = typeof value[name] === 'string' ? { url: value[name] } : value[name];
    if (!isRecord(given)) {
      const form = 'An upstream must be an address, such as http://127.0.0.1:3000, or a map with the field "url".';
      return reader.report(path, form) ?? [];
    }
    return readUpstream(reader, name, given) ?? [];
  });
}

function readUpstream(reader: ConfigReader, name: string, given: Record<string, unknown>): Upstream | undefined {
  const path = ['upstreams', name];
  const { url, send, query, basic, rewriteHost, passHeaders, ranges } = reader.knownFields(
    given,
    path,
    UPSTREAM_FIELDS,
  );
  const rewritesHost = reader.isTrue(rewriteHost, [...path, 'rewriteHost']);
  const passed = readPassed(reader, passHeaders, [...path, 'passHeaders']);
  const passesRanges = reader.isTrue(ranges, [...path, 'ranges']);
  const credentials = [
    ...readSent(reader, send, [...path, 'send'], 'header'),
    ...readSent(reader, query, [...path, 'query'], 'query'),
    ...(basic === undefined ? [] : readBasic(reader, basic, [...path, 'basic'])),
  ];
  const seen = new Set<string>();
  for (const { in: place, name: sent } of credentials) {
    const id = `${place} ${sent.toLowerCase().replaceAll('_', '-')}`;
    if (seen.has(id)) reader.report(path, `The ${place === 'header' ? 'header' : 'parameter'} ${sent} is sent twice.`);
    seen.add(id);
  }
  const text = reader.requiredText(url, [...path, 'url']);
  const address = text === undefined ? undefined : parseUpstream(text);
  if (address && 'refusal' in address)
    reader.report(typeof given['url'] === 'string' ? [...path, 'url'] : path, address.refusal);
  if (!address || 'refusal' in address) return undefined;
  return {
    name,
    address: address.value,
    send: credentials,
    rewriteHost: rewritesHost,
    ...(passed.length > 0 && { passHeaders: passed }),
    ...(passesRanges && { ranges: true }),
  };
}

/** Reads the headers in which proxies say to an upstream who makes a request. */
function readPassed(reader: ConfigReader, value: unknown, path: DocumentPath): string[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) {
    const form = 'The field "passHeaders" must be a list of names of headers, such as [X-Forwarded-User].';
    return reader.report(path, form) ?? [];
  }
  return reader.firstOf(value as unknown[], path, MAX_PASSED).flatMap((name, index) => {
    const problem = typeof name === 'string' ? problemOfPassedHeader(name) : 'is no text';
    if (problem === undefined) return [String(name).toLowerCase()];
    const message = `The header "${printable(String(name))}" cannot be passed on: it ${problem}.`;
    return reader.report([...path, index], message) ?? [];
  });
}

/** Reads the credentials that an upstream gets in headers, or in the query. */
function readSent(
  reader: ConfigReader,
  value: unknown,
  path: DocumentPath,
  place: SentCredential['in'],
): SentCredential[] {
  if (value === undefined) return [];
  const field = String(path.at(-1));
  const example = place === 'header' ? 'X-Api-Key' : 'apikey';
  if (!isRecord(value) || Object.keys(value).length === 0) {
    const form = `The field "${field}" must be a map, such as { ${example}: { file: /run/secrets/app } }.`;
    return reader.report(path, form) ?? [];
  }
  return Object.keys(value).flatMap((name) => {
    const at = [...path, name];
    const problem =
      place === 'header' ? problemOfSentHeader(name) : /^[\w.~-]+$/.test(name) ? undefined : 'is not a name';
    if (problem !== undefined) {
      const what = place === 'header' ? 'header' : 'parameter';
      const message = `The ${what} "${printable(name)}" cannot be sent: it ${problem}.`;
      reader.issues.push({ path: at, ofField: true, message });
    }
    const given = value[name];
    if (!isRecord(given)) {
      const form = `"${printable(name)}" must name the file of the credential, such as { file: /run/secrets/app }.`;
      return reader.report(at, form) ?? [];
    }
    const { file: named, scheme } = reader.knownFields(given, at, CREDENTIAL_FIELDS);
    if (scheme !== undefined && (typeof scheme !== 'string' || !SCHEME.test(scheme)))
      reader.report([...at, 'scheme'], 'The field "scheme" must be one word, such as Bearer.');
    const read = reader.filePath(named, [...at, 'file']);
    if (read === undefined) return [];
    return [{ in: place, name, file: read, ...(typeof scheme === 'string' && { scheme }) }];
  });
}

/** Reads the user and the password that an upstream gets by Basic. */
function readBasic(reader: ConfigReader, value: unknown, path: DocumentPath): SentCredential[] {
  const form = 'The field "basic" must be a map, such as { user: admin, password: { file: /run/secrets/app } }.';
  if (!isRecord(value)) return reader.report(path, form) ?? [];
  const { user: named, password } = reader.knownFields(value, path, BASIC_FIELDS);
  const user = reader.requiredText(named, [...path, 'user']);
  if (user?.includes(':'))
    reader.report([...path, 'user'], 'The field "user" has a colon, which Basic does not allow.');
  const read = reader.fileIn(
    password,
    [...path, 'password'],
    'The field "password" must name its file: { file: /run/secrets/app }.',
  );
  if (read === undefined || user === undefined) return [];
  return [{ in: 'header', name: 'Authorization', file: read, user }];
}
