import type { MiddlewareHandler } from 'hono';
import type { Action, Permission } from '../keys/permissions/catalog.ts';
import { splitPermission } from '../keys/permissions/permission-set.ts';
import { type Principal, uses } from '../keys/authorization/principal.ts';
import type { KeysService } from '../keys/service.ts';
import { type Log, NO_LOG } from '../log.ts';
import { clientAddress } from './client-address.ts';
import { readCredentials } from './credentials.ts';
import { refuse, unavailable } from './replies.ts';
import { RequestObserver } from './request-observer.ts';

/** The variables that the middleware sets: `c.get('principal')` is the authenticated key. */
export interface BearerEnv {
  /** See Hono's `Env`. */
  Variables: { principal: Principal };
}

/** Which keys the middleware accepts. */
export interface BearerAuthOptions {
  /** The service of an open key store, see `openKeys`. */
  keys: Pick<KeysService, 'authenticate'>;
  /** The permission that every request requires, such as `DOCKER:READ_ANY`. Default: any valid key is accepted. */
  permission?: Permission;
  /** The realm in `WWW-Authenticate`. Default: `svc-api`. */
  realm?: string;
  /** Logs refused keys, missing permissions and failures of the store. Default: nothing is logged. */
  log?: Log;
}

/**
 * Hono middleware that accepts only requests with a valid API key (RFC 6750), and checks it before the body is read.
 * No credentials: 401. A malformed header: 400 `invalid_request`. A key that is not valid, for whatever reason: 401
 * `invalid_token`. A key without the permission: 403 `insufficient_scope`. A store that does not answer: 503.
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
      return refuse(c, 401, 'UNAUTHENTICATED', 'Missing API key: send it as "Authorization: Bearer <API key>".', {
        'WWW-Authenticate': challenge,
      });
    }
    if (credentials === 'malformed') {
      return refuse(
        c,
        400,
        'INVALID_REQUEST',
        'The Authorization header is malformed: send exactly one, as "Bearer <API key>".',
        {
          'WWW-Authenticate': `${challenge}, error="invalid_request"`,
        },
      );
    }
    const address = clientAddress(c);
    let result;
    try {
      result = await keys.authenticate(credentials.token, address);
    } catch (error) {
      log.error({ err: error }, 'the store did not answer');
      return unavailable(c);
    }
    if ('refused' in result) {
      log.info({ reason: result.refused, prefix: result.publicId, address }, 'key refused');
      return refuse(c, 401, 'UNAUTHENTICATED', 'The API key is not valid.', {
        'WWW-Authenticate': `${challenge}, error="invalid_token"`,
      });
    }
    const observer = new RequestObserver(result.principal, log, address);
    const principal: Principal = { ...result.principal, observer };
    if (required && !uses(principal, ...required)) {
      observer.lacked([permission]);
      return refuse(c, 403, 'FORBIDDEN', `This key lacks ${permission}.`, {
        'WWW-Authenticate': `${challenge}, error="insufficient_scope", scope="${permission}"`,
      });
    }
    c.set('principal', principal);
    return next();
  };
}
