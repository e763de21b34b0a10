import type { Context, Handler } from 'hono';
import type { VerifiedKey } from '../keys/authentication/verified-keys.ts';
import type { KeysService } from '../keys/service.ts';
import type { BearerEnv } from './bearer-auth.ts';
import type { FailureLog } from './failure-log.ts';
import { readForm } from './form.ts';
import { requestIdIn } from './hono-head.ts';
import { JSON_RESPONSE } from './media-type.ts';
import { errorBody, type Reply, respond, unavailable } from './replies.ts';
import { RequestRefused } from './request-refused.ts';

/** Answers token introspection (RFC 7662) to callers that `bearerAuth` has let in. */
export function answerIntrospection(
  keys: Pick<KeysService, 'authenticator'>,
  failures: FailureLog,
): Handler<BearerEnv> {
  return async (c) => {
    let token;
    try {
      token = await readToken(c);
    } catch (error) {
      if (error instanceof RequestRefused) return respond(c, refusedReply(error));
      throw error;
    }
    const refusal = await c.get('checkAgain')();
    if (refusal) return refusal;
    try {
      const text = JSON.stringify(descriptionOf(await keys.authenticator.introspect(token)));
      return respond(c, { status: 200, type: JSON_RESPONSE, text });
    } catch (error) {
      failures.add(error, requestIdIn(c));
      return respond(c, unavailable());
    }
  };
}

/** The answer (RFC 7662, section 2.2). Of a key that is not accepted, nobody learns why. */
function descriptionOf(found: VerifiedKey | undefined): object {
  if (!found) return { active: false };
  const { principal, expiresAt } = found;
  const { id, name, createdAt } = principal.apiKey;
  return {
    active: true,
    scope: principal.access.permissions().join(' '),
    sub: id,
    client_id: name,
    token_type: 'Bearer',
    iat: Math.floor(createdAt / 1000),
    ...(expiresAt !== null && { exp: Math.floor(expiresAt / 1000) }),
  };
}

/** The token in a form (RFC 7662, section 2.1), and nowhere else. @throws RequestRefused */
async function readToken(c: Context): Promise<string> {
  const tokens = (await readForm(c, 'Keys are introspected')).getAll('token');
  const [token = ''] = tokens;
  if (token === '' || tokens.length > 1)
    throw new RequestRefused(400, 'BAD_REQUEST', 'The form must have exactly one "token", the API key in question.');
  return token;
}

/** In the form of RFC 6749, section 5.2, beside that of all other errors. */
function refusedReply({ status, code, message }: RequestRefused): Reply {
  const text = JSON.stringify({
    error: 'invalid_request',
    error_description: message,
    ...errorBody(message, code),
  });
  return { status, type: JSON_RESPONSE, text, ...(status === 405 && { headers: { Allow: 'POST' } }) };
}
