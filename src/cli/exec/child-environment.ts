/** Variables of libpq that hold a credential, or name a file that does. */
const CREDENTIALS = new Set([
  'PGPASSWORD',
  'PGPASSFILE',
  'PGSERVICE',
  'PGSERVICEFILE',
  'PGSSLCERT',
  'PGSSLKEY',
  'PGSSLPASSWORD',
]);

/**
 * The environment for a command that gets a temporary key: it must not also get the credentials of the key store, or
 * the key for a server, with which it could make itself any key. The path of a file stays: it grants nothing that the
 * file's mode does not.
 */
export function childEnvironment(env: NodeJS.ProcessEnv, database: string | undefined): NodeJS.ProcessEnv {
  const isOnServer = isServer(database ?? env['SVC_API_DATABASE']);
  return Object.fromEntries(
    Object.entries(env).filter(
      ([name, value]) =>
        name !== 'SVC_API_KEY' &&
        !(name === 'SVC_API_DATABASE' && isServer(value)) &&
        !(isOnServer && CREDENTIALS.has(name)),
    ),
  );
}

function isServer(database: string | undefined): boolean {
  return /^\s*postgres(ql)?:/i.test(database ?? '');
}
