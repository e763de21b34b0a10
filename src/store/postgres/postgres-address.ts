import { readFileSync } from 'node:fs';
import type { PoolConfig } from 'pg';
import { KeysError } from '../../keys/errors.ts';

/** Where a PostgreSQL store is, read from its URL. */
export interface PostgresAddress {
  /** The URL in a form that may be shown: without the password and the parameters of the connection. */
  location: string;
  /** The schema of the tables, if the URL names one. */
  schema: string | undefined;
  /** How to connect. */
  config: PoolConfig;
}

const PARAMETERS = [
  'application_name',
  'channel_binding',
  'connect_timeout',
  'host',
  'pool_size',
  'schema',
  'sslcert',
  'sslkey',
  'sslmode',
  'sslrootcert',
  'statement_timeout',
];

/** Whether a store's location is a PostgreSQL URL. */
export function isPostgresUrl(database: string): boolean {
  return /^postgres(ql)?:\/\//i.test(database);
}

/** Parses the URL of a store. Errors never repeat a part of it, which may be the password. @throws KeysError USAGE */
export function readPostgresUrl(text: string): PostgresAddress {
  const url = parse(text);
  const given = Object.fromEntries(url.searchParams) as Record<string, string | undefined>;
  const database = decode(url.pathname.slice(1));
  const schema = given['schema'] || undefined;
  if (schema !== undefined && !/^[a-z_][a-z0-9_]{0,62}$/.test(schema))
    throw invalid('its schema may only have lower-case letters, digits and "_", 63 at most');
  const timeouts = {
    connect: secondsOf(given['connect_timeout'], 'connect_timeout'),
    statement: numberOf(given['statement_timeout'], 'statement_timeout'),
  };
  return {
    location: shown(url, given),
    schema,
    config: {
      ...(hostOf(url, given) && { host: hostOf(url, given) }),
      ...(url.port && { port: Number(url.port) }),
      ...(url.username && { user: decode(url.username) }),
      ...(url.password && { password: decode(url.password) }),
      ...(database && { database }),
      ...(schema !== undefined && { options: `-c search_path=${schema}` }),
      ...(timeouts.connect !== undefined && { connectionTimeoutMillis: timeouts.connect }),
      ...(timeouts.statement !== undefined && { statement_timeout: timeouts.statement }),
      ...(given['pool_size'] !== undefined && { max: Math.max(1, numberOf(given['pool_size'], 'pool_size')!) }),
      ...(given['channel_binding'] === 'require' && { enableChannelBinding: true }),
      application_name: given['application_name'] ?? 'svc-api',
      ssl: tlsOf(given),
    },
  };
}

function parse(text: string): URL {
  let url;
  try {
    url = new URL(text);
  } catch {
    throw invalid('it cannot be parsed');
  }
  // A password with an unencoded "/" or "#" would end up in the path.
  if (url.hash || url.pathname.includes('@') || url.pathname.slice(1).includes('/'))
    throw invalid('it cannot be parsed');
  const unknown = [...url.searchParams.keys()].some((name) => !PARAMETERS.includes(name));
  if (unknown) throw invalid(`it may only have the parameters ${PARAMETERS.join(', ')}`);
  return url;
}

function shown(
  { protocol, username, host, pathname }: URL,
  { host: socket, schema }: Record<string, string | undefined>,
): string {
  const parameters = new URLSearchParams({ ...(socket && { host: socket }), ...(schema && { schema }) }).toString();
  return `${protocol}//${username && `${username}@`}${host}${pathname}${parameters && `?${parameters}`}`;
}

function hostOf(url: URL, given: Record<string, string | undefined>): string {
  return given['host'] || decode(url.hostname).replace(/^\[(.*)\]$/, '$1');
}

/** TLS options for `sslmode` as libpq defines it; without it the connection is not encrypted. */
function tlsOf(given: Record<string, string | undefined>): PoolConfig['ssl'] {
  const { sslmode = given['sslrootcert'] ? 'verify-full' : 'disable', sslrootcert, sslcert, sslkey } = given;
  if (sslmode === 'disable') return false;
  if (!['require', 'verify-ca', 'verify-full'].includes(sslmode)) {
    throw invalid('its sslmode must be disable, require, verify-ca or verify-full');
  }
  return {
    rejectUnauthorized: sslmode !== 'require' || sslrootcert !== undefined,
    ...(sslrootcert && sslrootcert !== 'system' && { ca: contentOf(sslrootcert) }),
    ...(sslcert && { cert: contentOf(sslcert) }),
    ...(sslkey && { key: contentOf(sslkey) }),
    // Only verify-full checks the name of the host.
    ...(sslmode !== 'verify-full' && { checkServerIdentity: () => undefined }),
  };
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new KeysError('STORE_UNAVAILABLE', `The certificate ${path} cannot be read. Check the path and its mode.`, {
      cause: error,
    });
  }
}

function secondsOf(text: string | undefined, name: string): number | undefined {
  const seconds = numberOf(text, name);
  return seconds && seconds * 1000;
}

function numberOf(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,7}$/.test(text)) throw invalid(`its ${name} must be a whole number`);
  return Number(text);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid('it cannot be parsed');
  }
}

function invalid(reason: string): KeysError {
  return new KeysError(
    'USAGE',
    `The address of the key store is invalid: ${reason}. Write postgres://user:password@host:5432/database, ` +
      'and percent-encode everything but letters and digits in the password.',
  );
}
