import { type DocumentReader, isRecord } from '../keys/document.ts';
import { suggestion } from '../keys/nearest.ts';
import { CONSENT_MODES, type ConsentMode } from '../keys/permissions/catalog.ts';
import { type Client, invalidClient, unusableClients } from '../keys/requests/clients.ts';
import { invalidPublicUrl } from '../keys/requests/public-url.ts';
import { printable } from '../keys/text.ts';

/** The fields of an application. */
export const CLIENT_FIELDS = ['id', 'name', 'redirects'] as const;
/** The most applications. */
export const MAX_CLIENTS = 1000;

/** Reads how applications may ask for keys. */
export function readConsent(reader: DocumentReader, value: unknown): ConsentMode | undefined {
  const mode = CONSENT_MODES.find((each) => each === value);
  if (value !== undefined && mode === undefined) {
    const meant = typeof value === 'string' ? suggestion(value, CONSENT_MODES) : '';
    reader.report(['consent'], `${meant}The field "consent" must be off, device, code or both.`);
  }
  return mode;
}

/** Reads the applications that may ask for keys. @param consent how they may; undefined if that is not said */
export function readClients(reader: DocumentReader, value: unknown, consent: unknown): Client[] {
  const faults = reader.issues.length;
  const list = reader.list(value, ['clients']);
  if (list.length > MAX_CLIENTS)
    reader.report(['clients'], `There are ${list.length} clients; at most ${MAX_CLIENTS} are allowed.`);
  const ids = new Set<string>();
  const clients = list.slice(0, MAX_CLIENTS).flatMap((item, index) => {
    const client = readClient(reader, item, index);
    if (!client) return [];
    if (ids.has(client.id)) reader.report(['clients', index], `"${printable(client.id)}" is declared more than once.`);
    ids.add(client.id);
    return [client];
  });
  const unusable = consent === undefined ? unusableClients(clients, undefined) : undefined;
  if (unusable !== undefined && reader.issues.length === faults) reader.report(['clients'], unusable);
  return clients;
}

function readClient(reader: DocumentReader, item: unknown, index: number): Client | undefined {
  const path = ['clients', index];
  if (!isRecord(item)) {
    reader.report(path, 'A client must be a map with the fields "id" and "name", and "redirects", a list.');
    return undefined;
  }
  const fields = reader.knownFields(item, path, CLIENT_FIELDS);
  const [id, name] = (['id', 'name'] as const).map((field) => {
    if (fields[field] !== undefined) return reader.text(fields[field], [...path, field]);
    return reader.missing(path, field);
  });
  const redirects = reader.list(fields.redirects, [...path, 'redirects']).flatMap((redirect, position) => {
    const text = reader.text(redirect, [...path, 'redirects', position]);
    return text === undefined ? [] : [text];
  });
  if (id === undefined || name === undefined) return undefined;
  const client = { id, name, redirects };
  for (const problem of invalidClient(client)) reader.report([...path, ...problem.path], problem.message);
  return client;
}

/** Reads the address under which clients reach the service. */
export function readPublicUrl(reader: DocumentReader, value: unknown): string | undefined {
  const text = value === undefined ? undefined : reader.text(value, ['publicUrl']);
  const message = text === undefined ? undefined : invalidPublicUrl(text);
  if (message === undefined) return text;
  reader.report(['publicUrl'], message);
  return undefined;
}
