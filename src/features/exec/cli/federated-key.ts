import { waitUnlessSignalled } from '../../../cli/signals.ts';
import {
  assertValid,
  type Issue,
  KeysError,
  printable,
  readDuration,
  readRetryAfter,
} from '../../../keys/basics/index.ts';
import { scopeItems } from '../../../keys/permissions/index.ts';
import { prefixOf, readSecret } from '../../../keys/secret/index.ts';
import {
  type Answer,
  descriptionIn,
  endKey,
  type GivenKey,
  givenIn,
  MAX_PAUSE_MS,
  OWN_CLIENT_ID,
  PassingError,
  postForm,
  refused,
  type Waiting,
} from '../../consent/cli/oauth.ts';
import type { TemporaryKey, TemporaryKeyRequest } from './temporary-key.ts';

const JWT_GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

/** Options for a temporary key from a server, which needs no credentials on this machine. */
interface FederatedKeyOptions {
  request: TemporaryKeyRequest;
  /** Its address, in the form of `readServerUrl`. */
  server: string;
  token: () => Promise<string>;
  issues: readonly Issue[];
  /** Shows a line to the user. */
  note: (text: string) => Promise<void>;
}

/**
 * Gets a temporary key from a server in exchange for an identity token.
 * @throws ValidationError with all issues; CliError USAGE; KeysError UNAUTHENTICATED, INPUT_INVALID, SERVER_…
 */
export async function exchangeTemporaryKey({
  request: { roles = [], permissions = [], ttl, name },
  server,
  token,
  issues,
  note,
}: FederatedKeyOptions): Promise<TemporaryKey> {
  const milliseconds = ttl === undefined ? undefined : readDuration(ttl);
  const unread: Issue = {
    code: 'EXPIRY_INVALID',
    message: `--expires-in is "${printable(ttl ?? '')}". Write it as 90s or 10m.`,
  };
  assertValid([...issues, ...(ttl !== undefined && milliseconds === undefined ? [unread] : [])]);
  const trimmed = (list: readonly string[]) => list.map((item) => item.trim());
  const scope = scopeItems({ roles: trimmed(roles), permissions: trimmed(permissions) }).join(' ');
  const seconds = milliseconds === undefined ? undefined : milliseconds / 1000;
  const { secret, expiresIn } = await exchangeToken(
    server,
    await token(),
    { scope, name, seconds },
    { note, wait: waitUnlessSignalled, now: Date.now },
  );
  return {
    secret,
    name: prefixOf(readSecret(secret)!.publicId),
    expiresAt: expiresIn === null ? null : Date.now() + expiresIn * 1000,
    remove: async () => void (await endKey({ server, secret, endsCreated: true })),
  };
}

/** The most attempts to send a token. */
const MAX_EXCHANGES = 5;

/**
 * Exchanges a token of an issuer that a server trusts for a key (RFC 7523). If the server says when to try again, and
 * that is within a minute, it tries again.
 * @param wanted a narrower scope than the server would give, and the validity in seconds
 * @param retrying `wait` resolves to a value if it was cut short
 * @throws KeysError UNAUTHENTICATED for a refused token; INPUT_INVALID for a scope that is not granted; SERVER_…
 */
async function exchangeToken(
  server: string,
  token: string,
  { scope, name, seconds }: { scope: string; name: string | undefined; seconds: number | undefined },
  { note, wait, now }: Waiting,
): Promise<GivenKey> {
  const form = {
    client_id: OWN_CLIENT_ID,
    grant_type: JWT_GRANT,
    assertion: token,
    ...(scope !== '' && { scope }),
    ...(name !== undefined && { name }),
    ...(seconds !== undefined && { expires_in: `${seconds}` }),
  };
  let answer: Answer | undefined;
  for (let left = MAX_EXCHANGES - 1; !answer; left -= 1)
    try {
      answer = await postForm(server, '/oauth/token', form);
    } catch (error) {
      const pause = error instanceof PassingError ? readRetryAfter(error.retryAfter, now()) : undefined;
      if (pause === undefined || pause > MAX_PAUSE_MS || left === 0) throw error;
      await note(`${(error as Error).message} Trying again in ${Math.ceil(pause / 1000)} s.`);
      if ((await wait(Math.max(pause, 1000))) !== undefined) throw error;
    }
  const { error } = answer;
  if (error === undefined) return givenIn(answer, server);
  if (error === 'invalid_grant') throw new KeysError('UNAUTHENTICATED', descriptionIn(answer));
  if (error !== 'unsupported_grant_type') throw refused(server, answer);
  throw new KeysError('UNAUTHENTICATED', `The server ${server} trusts no issuers: it has no "federation".`);
}
