import { dirname, resolve } from 'node:path';
import { type DocumentReader, isRecord } from '../keys/document.ts';
import { invalidOrigin } from '../keys/origin.ts';
import { listOf } from '../keys/text.ts';
import { type Config, DEFAULT_CONFIG, isCount, SERVER_NUMBERS, type ServerSettings } from './config.ts';

export const TLS_FIELDS = ['cert', 'key'] as const;
export const INTROSPECTION = ['on', 'off', 'permitted'] as const satisfies Config['introspection'][];

const NUMBER_FIELDS = Object.keys(SERVER_NUMBERS) as (keyof typeof SERVER_NUMBERS)[];
export const SERVER_FIELDS = [...NUMBER_FIELDS, 'metricsHost'] as const;

/** Reads what tunes a server. */
export function readServer(reader: DocumentReader, value: unknown): ServerSettings {
  if (value === undefined) return DEFAULT_CONFIG.server;
  if (!isRecord(value)) {
    reader.report(['server'], `The field "server" must be a map with fields of ${listOf(SERVER_FIELDS)}.`);
    return DEFAULT_CONFIG.server;
  }
  const fields = reader.knownFields(value, ['server'], SERVER_FIELDS);
  const numbers = NUMBER_FIELDS.filter((field) => fields[field] !== undefined).map((field) => {
    const [given, most] = [fields[field], SERVER_NUMBERS[field]];
    if (!isCount(given, most))
      reader.report(['server', field], `The field "${field}" must be a whole number from 1 to ${most}.`);
    return [field, given];
  });
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
export function readCors(reader: DocumentReader, value: unknown): Config['cors'] {
  if (value === undefined) return DEFAULT_CONFIG.cors;
  if (!isRecord(value)) {
    reader.report(['cors'], 'The field "cors" must be a map with the field "origins", a list.');
    return DEFAULT_CONFIG.cors;
  }
  const { origins: given } = reader.knownFields(value, ['cors'], ['origins']);
  const origins = reader.parsedList(given, ['cors', 'origins'], ([text = '']) => {
    const problem = invalidOrigin(text);
    return problem === undefined ? { values: [text], issues: [] } : { values: [], issues: [{ message: problem }] };
  });
  return { origins };
}

/** Reads where the certificate and its key are, from the folder of the file. */
export function readTls(reader: DocumentReader, value: unknown, file: string): Config['tls'] {
  if (value === undefined) return undefined;
  if (!isRecord(value)) {
    reader.report(['tls'], 'The field "tls" must be a map with the fields "cert" and "key".');
    return undefined;
  }
  const fields = reader.knownFields(value, ['tls'], TLS_FIELDS);
  const [cert, key] = TLS_FIELDS.map((field) => {
    const path = ['tls', field];
    if (fields[field] === undefined) reader.missing(['tls'], field);
    const text = fields[field] === undefined ? undefined : reader.text(fields[field], path);
    if (text === '' || text?.includes('\0')) reader.report(path, `The field "${field}" must be the path of a file.`);
    return resolve(dirname(file), text ?? '');
  });
  return { cert: cert!, key: key! };
}

/** Reads to whom GraphQL introspection is answered. */
export function readIntrospection(reader: DocumentReader, value: unknown): Config['introspection'] {
  const answered = INTROSPECTION.find((each) => each === value);
  if (value === undefined || answered) return answered ?? DEFAULT_CONFIG.introspection;
  reader.report(['introspection'], 'The field "introspection" must be on, off or permitted.');
  return DEFAULT_CONFIG.introspection;
}
