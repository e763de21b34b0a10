import type { MiddlewareHandler } from 'hono';
import type { Action, Permission } from '../keys/permissions/catalog.ts';
import { splitPermission } from '../keys/permissions/permission-set.ts';
import type { Principal } from '../keys/authorization/principal.ts';
import type { KeysService } from '../keys/service.ts';
import { type Log, NO_LOG } from '../log.ts';
import { readCredentials } from './credentials.ts';
import { refuse, unavailable } from './replies.ts';

/** What the middleware leaves in the context: `c.get('principal')`. */
export interface BearerEnv {
  Variables: { principal: Principal };
}

export interface BearerAuthOptions {
  keys: Pick<KeysService, 'authenticate'>;
  /** A permission that every request needs, such as `DOCKER:READ_ANY`; without it any valid key may pass. */
  permission?: Permission;
  /** The protection space that `WWW-Authenticate` names. */
  realm?: string;
  log?: Log;
}

/**
 * Lets only requests with a valid API key pass (RFC 6750), before anything of the body is read. No credentials: 401. A
 * malformed header: 400 `invalid_request`. A key that is not valid, for whatever reason: 401 `invalid_token`. A key
 * without the permission: 403 `insufficient_scope`. A store that does not answer: 503.
 *
 * @example
 * const keys = await openKeys();
 * const app = new Hono().use(bearerAuth({ keys })).get('/', (c) => c.text(c.get('principal').key.name));
 */
export function bearerAuth(options: BearerAuthOptions): MiddlewareHandler<BearerEnv> {
  const { keys, permission, realm = 'svc-api', log = NO_LOG } = options;
  const required = permission && (splitPermission(permission) satisfies [string, Action]);
  const challenge = `Bearer realm="${realm}"`;

  return async (c, next) => {
    const credentials = readCredentials(c.req.header('authorization'));
    if (credentials === 'none') {
      return refuse(c, 401, 'UNAUTHENTICATED', 'An API key is needed: send it as "Authorization: Bearer <API key>".', {
        'WWW-Authenticate': challenge,
      });
    }
    if (credentials === 'malformed') {
      return refuse(
        c,
        400,
        'INVALID_REQUEST',
        'The Authorization header is malformed: send one, as "Bearer <API key>".',
        {
          'WWW-Authenticate': `${challenge}, error="invalid_request"`,
        },
      );
    }
    let result;
    try {
      result = await keys.authenticate(credentials.token);
    } catch (error) {
      log.error({ err: error }, 'the store did not answer');
      return unavailable(c);
    }
    if ('refused' in result) {
      log.info({ reason: result.refused, prefix: result.publicId }, 'key refused');
      return refuse(c, 401, 'UNAUTHENTICATED', 'The API key is not valid.', {
        'WWW-Authenticate': `${challenge}, error="invalid_token"`,
      });
    }
    if (required && !result.principal.access.has(...required)) {
      return refuse(c, 403, 'FORBIDDEN', `This key lacks ${permission}.`, {
        'WWW-Authenticate': `${challenge}, error="insufficient_scope", scope="${permission}"`,
      });
    }
    c.set('principal', result.principal);
    return next();
  };
}
