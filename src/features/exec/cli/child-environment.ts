/** Variables of libpq that hold a credential, or the path of one. */
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
 * The environment for a command that gets a temporary key, without credentials of the key store, keys for servers, and
 * identity tokens, which would let it create any key for itself. Paths of files stay: the file's mode decides who can
 * read it.
 */
export function childEnvironment(env: NodeJS.ProcessEnv, database: string | undefined): NodeJS.ProcessEnv {
  const isOnServer = isServer(database ?? env['SVC_API_DATABASE']);
  return Object.fromEntries(
    Object.entries(env).filter(
      ([name, value]) =>
        name !== 'SVC_API_KEY' &&
        name !== 'SVC_API_ID_TOKEN' &&
        !(name === 'SVC_API_DATABASE' && isServer(value)) &&
        !(isOnServer && CREDENTIALS.has(name)),
    ),
  );
}

function isServer(database: string | undefined): boolean {
  return /^\s*postgres(ql)?:/i.test(database ?? '');
}
