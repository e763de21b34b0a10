import { type CredentialPlace, problemOfHeader } from '../keys/secret/index.ts';
import {
  type DocumentPath,
  invalidOrigin,
  invalidNetwork,
  invalidPublicUrl,
  formatDuration,
  isRecord,
  formatList,
  nearest,
  Networks,
  printable,
  suggestion,
  UNIT_MS,
} from '../keys/basics/index.ts';
import {
  DEFAULT_NOTICES,
  invalidWebhook,
  MAX_REFUSED_OFTEN,
  NOTICE_TYPES,
  type NoticeSettings,
  type NoticeType,
} from '../keys/feed/index.ts';
import { CONSENT_MODES, type ConsentMode, readPeriod } from '../keys/permissions/index.ts';
import {
  type Client,
  DEFAULT_REFRESH,
  invalidClient,
  MAX_LEEWAY_MS,
  type RefreshSettings,
  unusableClients,
} from '../keys/consent/index.ts';
import {
  type Config,
  DEFAULT_CONFIG,
  isNatsAddress,
  NATS_NAME,
  NATS_NAME_FORM,
  SERVER_NUMBERS,
  type ServerSettings,
} from './config.ts';
import type { ConfigReader } from './config-reader.ts';

/** Reads where a key may stand in a request. */
export function readCredentials(reader: ConfigReader, value: unknown): readonly CredentialPlace[] {
  if (value === undefined) return DEFAULT_CONFIG.credentials;
  const items = reader.list(value, ['credentials']);
  const nothing = 'The list "credentials" is empty, so that no key could be sent. Leave it out for bearer.';
  reader.refuseEmpty(value, ['credentials'], nothing);
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

function readPlace(reader: ConfigReader, item: unknown, path: DocumentPath): CredentialPlace | undefined {
  if (item === 'bearer' || item === 'basic') return item;
  // Of other fields, all that is possible is said below.
  const meant = isRecord(item) ? Object.keys(item).flatMap((field) => nearest(field, ['header'])) : [];
  if (!isRecord(item) || meant.length === 0) {
    const shown = typeof item === 'string' ? `"${printable(item)}" is not a place for a key. Write` : 'Write';
    return reader.report(path, `${shown} bearer, basic, or { header: X-Api-Key }.`);
  }
  const { header } = reader.knownFields(item, path, ['header']);
  const name = reader.text(header, [...path, 'header']);
  if (name === undefined) return undefined;
  const problem = problemOfHeader(name);
  if (problem === undefined) return { header: name.toLowerCase() };
  return reader.report([...path, 'header'], `The header "${printable(name)}" cannot hold a key: it ${problem}.`);
}

/** Reads whose forwarded headers are believed. */
export function readTrust(reader: ConfigReader, value: unknown): Networks {
  if (value === undefined) return DEFAULT_CONFIG.trust;
  return new Networks(
    reader.textsOf(value, ['trust'], (text, at) => {
      const problem = invalidNetwork(text);
      return problem === undefined ? text : reader.report(at, problem);
    }),
  );
}

export const CLIENT_FIELDS = ['id', 'name', 'redirects', 'refreshes'] as const;
export const CLIENTS_FIELDS = ['registered', 'metadata-documents', 'dynamic-registration', 'refresh'] as const;
export const REFRESH_FIELDS = ['leeway', 'lifetime'] as const;
/** A shorter one would end while the application still has its first secret. */
const MIN_LIFETIME_MS = UNIT_MS.h;
/** The most applications. */
export const MAX_CLIENTS = 1000;

/** Reads how applications may ask for keys. */
export function readConsent(reader: ConfigReader, value: unknown): ConsentMode | undefined {
  const mode = CONSENT_MODES.find((each) => each === value);
  if (value === undefined || mode !== undefined) return mode;
  const meant = typeof value === 'string' ? suggestion(value, CONSENT_MODES) : '';
  return reader.report(['consent'], `${meant}The field "consent" must be off, device, code or both.`);
}

/**
 * Reads the applications that may ask for keys: a list, or a map where others than those may, too.
 * @param consent how they may; undefined if that is not said
 */
export function readClients(
  reader: ConfigReader,
  value: unknown,
  consent: unknown,
): Pick<Config, 'clients' | 'clientDocuments' | 'dynamicRegistration' | 'refresh'> {
  const issuesBefore = reader.issues.length;
  const fields = isRecord(value) ? reader.knownFields(value, ['clients'], CLIENTS_FIELDS) : undefined;
  if (fields && Object.keys(fields).length === 0)
    reader.report(['clients'], 'The map "clients" is empty. Leave it out, or write a list of clients.');
  const path = fields ? ['clients', 'registered'] : ['clients'];
  const list = reader.list(fields ? fields.registered : value, path);
  const ids = new Set<string>();
  const clients = reader.firstOf(list, path, MAX_CLIENTS, 'clients').flatMap((item, index) => {
    const client = readClient(reader, item, [...path, index]);
    if (!client) return [];
    if (ids.has(client.id)) reader.report([...path, index], `"${printable(client.id)}" is declared more than once.`);
    ids.add(client.id);
    return [client];
  });
  const { 'metadata-documents': documents = 'off', 'dynamic-registration': dynamic } = fields ?? {};
  const clientDocuments = readDocumentHosts(reader, documents);
  const dynamicRegistration = reader.isTrue(dynamic, ['clients', 'dynamic-registration']);
  const others = clientDocuments !== 'off' || dynamicRegistration;
  if (others && consent !== 'code' && consent !== 'both' && reader.issues.length === issuesBefore)
    reader.report(['clients'], 'Clients that are not registered open pages: write "consent: code" or "consent: both".');
  const unusable = consent === undefined ? unusableClients(clients, undefined) : undefined;
  if (unusable !== undefined && reader.issues.length === issuesBefore) reader.report(['clients'], unusable);
  return { clients, clientDocuments, dynamicRegistration, refresh: readRefresh(reader, fields?.refresh) };
}

function readRefresh(reader: ConfigReader, value: unknown): RefreshSettings {
  const path = ['clients', 'refresh'];
  if (value === undefined) return DEFAULT_REFRESH;
  if (!isRecord(value))
    return (
      reader.report(path, 'The field "refresh" must be a map, such as { leeway: 30m, lifetime: 90d }.') ??
      DEFAULT_REFRESH
    );
  const fields = reader.knownFields(value, path, REFRESH_FIELDS);
  const periodOf = (field: (typeof REFRESH_FIELDS)[number], least: number) => {
    if (fields[field] === undefined) return DEFAULT_REFRESH[field];
    const text = reader.text(fields[field], [...path, field]);
    const period = text === undefined ? undefined : readPeriod(text, least);
    return typeof period === 'string' ? reader.report([...path, field], period) : period;
  };
  const leeway = fields.leeway === '0s' ? 0 : (periodOf('leeway', 0) ?? 0);
  if (leeway > MAX_LEEWAY_MS)
    reader.report([...path, 'leeway'], `A leeway is at most ${formatDuration(MAX_LEEWAY_MS)}: secrets last an hour.`);
  return { leeway, lifetime: periodOf('lifetime', MIN_LIFETIME_MS) ?? null };
}

const HOST = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?$/;

function readDocumentHosts(reader: ConfigReader, value: unknown): Config['clientDocuments'] {
  const path = ['clients', 'metadata-documents'];
  if (value === 'any' || value === 'off') return value;
  if (!Array.isArray(value) || value.length === 0) {
    reader.report(path, 'The field "metadata-documents" must be any, off, or a list of hosts, such as [claude.ai].');
    return 'off';
  }
  return reader.textsOf(value, path, (text, at) =>
    HOST.test(text)
      ? text
      : reader.report(at, `"${printable(text)}" is not a host: write it in small letters, as claude.ai.`),
  );
}

function readClient(reader: ConfigReader, item: unknown, path: DocumentPath): Client | undefined {
  if (!isRecord(item))
    return reader.report(path, 'A client must be a map with the fields "id" and "name", and "redirects", a list.');
  const fields = reader.knownFields(item, path, CLIENT_FIELDS);
  const id = reader.requiredText(fields.id, [...path, 'id']);
  const name = reader.requiredText(fields.name, [...path, 'name']);
  const redirects = reader.list(fields.redirects, [...path, 'redirects']).flatMap((redirect, position) => {
    const text = reader.text(redirect, [...path, 'redirects', position]);
    return text === undefined ? [] : [text];
  });
  if (id === undefined || name === undefined) return undefined;
  const refreshes = reader.isTrue(fields.refreshes, [...path, 'refreshes']);
  const client = { id, name, redirects, ...(refreshes && { refreshes }) };
  for (const problem of invalidClient(client)) reader.report([...path, ...problem.path], problem.message);
  return client;
}

/** Reads the address under which clients reach the service. */
export function readPublicUrl(reader: ConfigReader, value: unknown): string | undefined {
  const text = reader.optionalText(value, ['publicUrl']);
  const message = text === undefined ? undefined : invalidPublicUrl(text);
  return message === undefined ? text : reader.report(['publicUrl'], message);
}

export const NOTICES_FIELDS = ['url', 'secretFile', 'events', 'refusedOften'] as const;

/** Reads who is told of what. */
export function readNotices(reader: ConfigReader, value: unknown): NoticeSettings | undefined {
  const fields = reader.section(value, 'notices', NOTICES_FIELDS);
  if (!fields) return undefined;
  const { url: givenUrl, secretFile, events, refusedOften = DEFAULT_NOTICES.refusedOften } = fields;
  const url = reader.requiredText(givenUrl, ['notices', 'url']);
  const problem = url === undefined ? undefined : invalidWebhook(url);
  if (problem !== undefined) reader.report(['notices', 'url'], problem);
  const often = reader.count(refusedOften, ['notices', 'refusedOften'], MAX_REFUSED_OFTEN);
  return {
    url: url ?? '',
    secretFile: secretFile === undefined ? undefined : reader.filePath(secretFile, ['notices', 'secretFile']),
    events: events === undefined ? DEFAULT_NOTICES.events : readEvents(reader, events),
    refusedOften: often ?? DEFAULT_NOTICES.refusedOften,
  };
}

function readEvents(reader: ConfigReader, value: unknown): NoticeType[] {
  const path = ['notices', 'events'];
  const events = reader.textsOf(value, path, (text, at) => {
    const type = NOTICE_TYPES.find((each) => each === text);
    const message = `"${printable(text)}" is not an event. ${suggestion(text, NOTICE_TYPES)}`;
    return type ?? reader.report(at, `${message}The events are ${formatList(NOTICE_TYPES)}.`);
  });
  reader.refuseEmpty(value, path, 'The field "events" is empty. Leave it out for all events, or leave out "notices".');
  return events;
}

export const TLS_FIELDS = ['cert', 'key', 'clientCa'] as const;
export const INTROSPECTION = ['on', 'off', 'permitted'] as const satisfies Config['introspection'][];

const NUMBER_FIELDS = Object.keys(SERVER_NUMBERS) as (keyof typeof SERVER_NUMBERS)[];
export const SERVER_FIELDS = [...NUMBER_FIELDS, 'metricsHost'] as const;

export function readServer(reader: ConfigReader, value: unknown): ServerSettings {
  const fields = reader.section(value, 'server', SERVER_FIELDS);
  if (!fields) return DEFAULT_CONFIG.server;
  const numbers = NUMBER_FIELDS.filter((field) => fields[field] !== undefined).map((field) => [
    field,
    reader.count(fields[field], ['server', field], SERVER_NUMBERS[field]),
  ]);
  const { metricsHost } = fields;
  if (metricsHost === undefined) return Object.fromEntries(numbers) as ServerSettings;
  const host = reader.text(metricsHost, ['server', 'metricsHost']);
  if (host?.trim() === '')
    reader.report(
      ['server', 'metricsHost'],
      'The field "metricsHost" is empty. Give an address to listen on, such as 127.0.0.1.',
    );
  return { ...(Object.fromEntries(numbers) as ServerSettings), metricsHost: host };
}

/** Reads whose pages may send requests. */
export function readCors(reader: ConfigReader, value: unknown): Config['cors'] {
  const section = reader.section(value, 'cors', ['origins'], 'a map with the field "origins", a list');
  if (!section) return DEFAULT_CONFIG.cors;
  const { origins: given } = section;
  const origins = reader.textsOf(given, ['cors', 'origins'], (text, at) => {
    const problem = invalidOrigin(text);
    return problem === undefined ? text : reader.report(at, problem);
  });
  return { origins };
}

export function readTls(reader: ConfigReader, value: unknown): Config['tls'] {
  const fields = reader.section(value, 'tls', TLS_FIELDS, 'a map with the fields "cert" and "key"');
  if (!fields) return undefined;
  const cert = reader.filePath(fields.cert, ['tls', 'cert']);
  const key = reader.filePath(fields.key, ['tls', 'key']);
  const clientCa = fields.clientCa === undefined ? undefined : reader.filePath(fields.clientCa, ['tls', 'clientCa']);
  return { cert: cert ?? '', key: key ?? '', ...(clientCa !== undefined && { clientCa }) };
}

/** The fields of `audit`. */
export const AUDIT_FIELDS = ['keep'] as const;
/** It is looked at once an hour, and a webhook is told of what is kept. */
const MIN_KEEP_MS = UNIT_MS.d;

/** Reads for how long the audit log is kept. */
export function readAudit(reader: ConfigReader, value: unknown): Config['audit'] {
  const section = reader.section(value, 'audit', AUDIT_FIELDS, 'a map with the field "keep", such as { keep: 400d }');
  if (!section) return DEFAULT_CONFIG.audit;
  const { keep } = section;
  const text = reader.text(keep, ['audit', 'keep']);
  if (text === undefined) return DEFAULT_CONFIG.audit;
  const period = readPeriod(text, MIN_KEEP_MS);
  if (typeof period === 'number') return { keep: period };
  reader.report(['audit', 'keep'], period);
  return DEFAULT_CONFIG.audit;
}

/** Reads to whom GraphQL introspection is answered. */
export function readIntrospection(reader: ConfigReader, value: unknown): Config['introspection'] {
  return reader.oneOf(value, ['introspection'], INTROSPECTION) ?? DEFAULT_CONFIG.introspection;
}

export const SIGN_IN = ['on', 'off'] as const satisfies Config['signIn'][];

/** Reads whether people sign in to guarded services. */
export function readSignIn(reader: ConfigReader, value: unknown): Config['signIn'] {
  return reader.oneOf(value, ['sign-in'], SIGN_IN);
}

export const NATS_FIELDS = ['servers', 'credentials', 'name'] as const;

/** Reads by what else than HTTP edges follow. */
export function readFeed(reader: ConfigReader, value: unknown): Config['feed'] {
  const feed = reader.section(value, 'feed', ['nats'], 'a map with the field "nats"');
  if (!feed) return undefined;
  const path = ['feed', 'nats'];
  if (!isRecord(feed.nats))
    return reader.report(path, `The field "nats" must be a map with ${formatList(NATS_FIELDS)}.`);
  const fields = reader.knownFields(feed.nats, path, NATS_FIELDS);
  if (fields.servers === undefined) reader.missing(path, 'servers');
  const nothing = 'The list "servers" is empty. Name at least one, as nats://127.0.0.1:4222.';
  reader.refuseEmpty(fields.servers, [...path, 'servers'], nothing);
  const servers = reader.textsOf(fields.servers, [...path, 'servers'], (text, at) =>
    isNatsAddress(text)
      ? text
      : reader.report(
          at,
          `"${printable(text)}" is not a server: write it as nats://127.0.0.1:4222 or tls://host, alone.`,
        ),
  );
  const { name = NATS_NAME } = fields;
  if (typeof name !== 'string' || !NATS_NAME_FORM.test(name))
    reader.report([...path, 'name'], 'The field "name" must be of letters, digits, "-" and "_", and at most 100 long.');
  const credentials = readNatsCredentials(reader, fields.credentials, [...path, 'credentials']);
  return { nats: { servers, credentials, name: String(name) } };
}

function readNatsCredentials(reader: ConfigReader, value: unknown, path: DocumentPath) {
  if (value === undefined) return undefined;
  const file = reader.fileIn(value, path, 'The field "credentials" must be a map with the field "file".');
  return file === undefined ? undefined : { file };
}
