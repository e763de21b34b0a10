import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import type { PoolConfig } from 'pg';
import { KeysError } from '../keys/basics/index.ts';
import { findPassword } from './postgres-password.ts';

/** The location of a PostgreSQL store, read from its URL. */
export interface PostgresAddress {
  /** The URL in a form that can be shown: without the password and connection parameters. */
  location: string;
  /** The schema of the tables, if the URL names one. */
  schema: string | undefined;
  /** The role that owns the tables, if the URL names one. */
  owner: string | undefined;
  /** How to connect. */
  config: PoolConfig;
}

const PARAMETERS = [
  'application_name',
  'channel_binding',
  'connect_timeout',
  'host',
  'owner',
  'pool_size',
  'schema',
  'sslcert',
  'sslkey',
  'sslmode',
  'sslrootcert',
  'statement_timeout',
];

/** True for a PostgreSQL URL as the location of a store. */
export function isPostgresUrl(database: string): boolean {
  return /^postgres(ql)?:\/\//i.test(database);
}

/** Variables of libpq that restrict the server or the way to reach it, and that `pg` ignores. */
const UNSUPPORTED = [
  'PGGSSENCMODE',
  'PGHOSTADDR',
  'PGREQUIREAUTH',
  'PGREQUIREPEER',
  'PGREQUIRESSL',
  'PGSERVICE',
  'PGSSLCRL',
  'PGSSLCRLDIR',
  'PGSSLMAXPROTOCOLVERSION',
  'PGSSLMINPROTOCOLVERSION',
  'PGTARGETSESSIONATTRS',
];

/**
 * Parses the URL of a store, with defaults from the variables of libpq. Errors never repeat a part of the URL, which
 * could be the password.
 * @throws KeysError USAGE, STORE_UNAVAILABLE
 */
export function readPostgresUrl(text: string, env: NodeJS.ProcessEnv = process.env): PostgresAddress {
  const url = parse(text);
  refuseUnsupported(env);
  const given = Object.fromEntries(url.searchParams) as Record<string, string | undefined>;
  const host = hostOf(url, given);
  const channelBinding = given['channel_binding'] ?? env['PGCHANNELBINDING'];
  const database = decode(url.pathname.slice(1));
  const schema = given['schema'] || undefined;
  if (schema !== undefined && !/^[a-z_][a-z0-9_]{0,62}$/.test(schema))
    throw invalid('its schema can have only lower-case letters, digits and "_", at most 63');
  const timeouts = {
    connect: secondsOf(given['connect_timeout'] ?? (env['PGCONNECT_TIMEOUT'] || undefined), 'connect_timeout'),
    statement: toNumber(given['statement_timeout'], 'statement_timeout'),
  };
  return {
    location: shown(url, given),
    schema,
    owner: given['owner'] || undefined,
    config: {
      ...(host && { host }),
      ...(url.port && { port: Number(url.port) }),
      ...(url.username && { user: decode(url.username) }),
      ...passwordOf(url, { host, database }, env),
      ...(database && { database }),
      // Unless it is named last, pg_temp comes first, where other users of a shared session may have left tables.
      ...(schema !== undefined && { options: `${env['PGOPTIONS'] ?? ''} -c search_path=${schema},pg_temp`.trim() }),
      ...(timeouts.connect !== undefined && { connectionTimeoutMillis: timeouts.connect }),
      ...(timeouts.statement !== undefined && { statement_timeout: timeouts.statement }),
      ...(given['pool_size'] !== undefined && { max: Math.max(1, toNumber(given['pool_size'], 'pool_size')!) }),
      ...(channelBinding === 'require' && { enableChannelBinding: true }),
      application_name: given['application_name'] ?? (env['PGAPPNAME'] || 'svc-api'),
      ssl: tlsOf(host || env['PGHOST'] || 'localhost', {
        sslmode: given['sslmode'] ?? env['PGSSLMODE'],
        sslrootcert: given['sslrootcert'] ?? env['PGSSLROOTCERT'],
        sslcert: given['sslcert'] ?? env['PGSSLCERT'],
        sslkey: given['sslkey'] ?? env['PGSSLKEY'],
        sslpassword: env['PGSSLPASSWORD'],
      }),
    },
  };
}

/** The password of the URL, or a function that reads the password file if the server asks for a password. */
function passwordOf(
  url: URL,
  { host, database }: { host: string; database: string },
  env: NodeJS.ProcessEnv,
): Pick<PoolConfig, 'password'> {
  if (url.password) return { password: decode(url.password) };
  if (env['PGPASSWORD']) return {};
  const user = decode(url.username) || env['PGUSER'] || (env['USER'] ?? env['USERNAME'] ?? '');
  const target = [
    host || env['PGHOST'] || 'localhost',
    url.port || env['PGPORT'] || '5432',
    database || env['PGDATABASE'] || user,
    user,
  ] as const;
  return { password: async () => findPassword(target, env) ?? '' };
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
  if (unknown) throw invalid(`it can have only the parameters ${PARAMETERS.join(', ')}`);
  return url;
}

function shown(
  { protocol, username, host, pathname }: URL,
  { host: socket, schema, owner }: Record<string, string | undefined>,
): string {
  const parameters = new URLSearchParams({
    ...(socket && { host: socket }),
    ...(schema && { schema }),
    ...(owner && { owner }),
  }).toString();
  return `${protocol}//${username && `${username}@`}${host}${pathname}${parameters && `?${parameters}`}`;
}

function hostOf(url: URL, given: Record<string, string | undefined>): string {
  return given['host'] || decode(url.hostname).replace(/^\[(.*)\]$/, '$1');
}

function refuseUnsupported(env: NodeJS.ProcessEnv): void {
  const found = UNSUPPORTED.find((name) => env[name]);
  if (found === undefined) return;
  throw new KeysError(
    'USAGE',
    `${found} is set, which svc-api does not support. Unset it; the address of the key store names one server.`,
  );
}

function secondsOf(text: string | undefined, name: string): number | undefined {
  const seconds = toNumber(text, name);
  return seconds && seconds * 1000;
}

function toNumber(text: string | undefined, name: string): number | undefined {
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

/** The parameters of libpq for TLS: a mode, paths, and the password of the client's key. */
type TlsParameters = Record<'sslmode' | 'sslrootcert' | 'sslcert' | 'sslkey' | 'sslpassword', string | undefined>;

const MODES = new Set(['disable', 'require', 'verify-ca', 'verify-full']);

/**
 * TLS options for `sslmode` as libpq defines it, except for the default: a server on another machine must prove its
 * identity.
 * @throws KeysError USAGE, STORE_UNAVAILABLE
 */
function tlsOf(
  host: string,
  { sslrootcert, sslcert, sslkey, sslpassword, ...given }: TlsParameters,
): PoolConfig['ssl'] {
  const isNear = isOnThisMachine(host);
  const sslmode = given.sslmode || (isNear && !sslrootcert ? 'disable' : 'verify-full');
  if (isNear && /^(allow|prefer)$/.test(sslmode)) return false;
  if (sslmode === 'no-verify')
    throw new KeysError(
      'USAGE',
      'The sslmode of the key store is no-verify, which PostgreSQL does not have. Write sslmode=verify-full, or ' +
        'sslmode=require without sslrootcert to encrypt without checking the certificate.',
    );
  if (!MODES.has(sslmode))
    throw new KeysError(
      'USAGE',
      'The sslmode of the key store must be verify-full, verify-ca, require or disable: with allow or prefer, ' +
        'an attacker on the network could turn encryption off. Write sslmode=verify-full.',
    );
  if (sslmode === 'disable') return false;
  // Anyone can get a certificate from a public authority, so the host name must be checked.
  if (sslrootcert === 'system' && sslmode !== 'verify-full')
    throw new KeysError(
      'USAGE',
      `The sslmode of the key store is ${sslmode}, which does not check the name of the server: a certificate of a ` +
        'public authority then proves nothing. With sslrootcert=system, write sslmode=verify-full.',
    );
  return {
    // With the certificate of an authority, "require" is "verify-ca", as for libpq.
    rejectUnauthorized: sslmode !== 'require' || Boolean(sslrootcert),
    ...(sslrootcert && sslrootcert !== 'system' && { ca: contentOf(sslrootcert) }),
    ...(sslcert && { cert: contentOf(sslcert) }),
    ...(sslkey && { key: contentOf(sslkey) }),
    ...(sslpassword && { passphrase: sslpassword }),
    // Only verify-full checks the name of the host.
    ...(sslmode !== 'verify-full' && { checkServerIdentity: () => undefined }),
  };
}

/** True for a Unix socket or a loopback address, where other machines cannot listen in. */
function isOnThisMachine(host: string): boolean {
  const name = host.toLowerCase();
  if (name.startsWith('/') || name === 'localhost' || name === '::1') return true;
  return isIP(name) === 4 && name.startsWith('127.');
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
