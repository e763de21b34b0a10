import type { Context } from 'hono';
import type { Authentication } from '../keys/authentication/authenticate.ts';
import { type Principal, uses } from '../keys/authorization/principal.ts';
import type { Action, Permission } from '../keys/permissions/catalog.ts';
import { splitPermission } from '../keys/permissions/permission-set.ts';
import { prefixOf } from '../keys/secret/secret.ts';
import type { KeysService } from '../keys/service.ts';
import type { Log } from '../log.ts';
import { clientAddress } from './client-address.ts';
import { readCredentials } from './credentials.ts';
import type { FailureLog } from './failure-log.ts';
import type { RefusalLog } from './refusal-log.ts';
import { refuse, unavailable } from './replies.ts';
import { RequestObserver } from './request-observer.ts';

/** The variables that the middleware sets. */
export interface BearerEnv {
  /** See Hono's `Env`. */
  Variables: {
    /** The authenticated key. */
    principal: Principal;
    /**
     * Checks the key again, as it is now: the one that was let in may have been deleted while its body arrived. Call it
     * once the body has been read. Returns the reply if the request must be refused; otherwise `principal` is up to
     * date.
     */
    checkAgain: () => Promise<Response | undefined>;
  };
}

/** Which keys the middleware accepts. */
export interface BearerAuthOptions {
  /** The service of an open key store, see `openKeys`. */
  keys: Pick<KeysService, 'authenticate' | 'confirm'>;
  /** The permission that every request requires, such as `DOCKER:READ_ANY`. Default: any valid key is accepted. */
  permission?: Permission;
  /** The realm in `WWW-Authenticate`. Default: `svc-api`. */
  realm?: string;
  /**
   * Logs refused keys, missing permissions and failures of the store, in sums: each kind at once, its repetitions every
   * minute and when the process ends, unless a signal kills it. Default: nothing is logged.
   */
  log?: Log;
}

/** Where a check says what it did not let in. */
export interface CheckLogs {
  refusals: RefusalLog;
  failures: FailureLog;
}

/** Checks the bearer token of a request. Each method returns the reply to a request that must be refused. */
export class BearerCheck {
  readonly #options: BearerAuthOptions;
  readonly #logs: CheckLogs;
  readonly #required: [string, Action] | undefined;
  readonly #challenge: string;

  constructor(options: BearerAuthOptions, logs: CheckLogs) {
    const { permission, realm = 'svc-api' } = options;
    this.#options = options;
    this.#logs = logs;
    this.#required = permission && splitPermission(permission);
    this.#challenge = `Bearer realm="${realm}"`;
  }

  /** Checks a request that has just arrived, and sets its `principal`. Counts as a use of its key. */
  async enter(c: Context<BearerEnv>): Promise<Response | undefined> {
    const credentials = readCredentials(c.req.header('authorization'));
    if (credentials === 'none') {
      return refuse(c, 401, 'UNAUTHENTICATED', 'Missing API key: send it as "Authorization: Bearer <API key>".', {
        'WWW-Authenticate': this.#challenge,
      });
    }
    if (credentials === 'malformed') {
      return refuse(
        c,
        400,
        'INVALID_REQUEST',
        'The Authorization header is malformed: send exactly one, as "Bearer <API key>".',
        {
          'WWW-Authenticate': `${this.#challenge}, error="invalid_request"`,
        },
      );
    }
    return this.#admit(c, (address) => this.#options.keys.authenticate(credentials.token, address));
  }

  /** Checks a request again that was let in. Counts as no further use. */
  async again(c: Context<BearerEnv>): Promise<Response | undefined> {
    const { token } = readCredentials(c.req.header('authorization')) as { token: string };
    return this.#admit(c, (address) => this.#options.keys.confirm(token, address));
  }

  async #admit(
    c: Context<BearerEnv>,
    authenticate: (address: string | undefined) => Promise<Authentication>,
  ): Promise<Response | undefined> {
    const { permission } = this.#options;
    const { refusals, failures } = this.#logs;
    const address = clientAddress(c);
    let result;
    try {
      result = await authenticate(address);
    } catch (error) {
      failures.add(error);
      return unavailable(c);
    }
    if ('refused' in result) {
      const prefix = result.publicId === undefined ? undefined : prefixOf(result.publicId);
      refusals.add('key refused', { reason: result.refused, prefix, address });
      return refuse(c, 401, 'UNAUTHENTICATED', 'The API key is not valid.', {
        'WWW-Authenticate': `${this.#challenge}, error="invalid_token"`,
      });
    }
    const observer = new RequestObserver(result.principal, refusals, address);
    const principal: Principal = { ...result.principal, observer };
    if (this.#required && !uses(principal, ...this.#required)) {
      observer.lacked([permission!]);
      return refuse(c, 403, 'FORBIDDEN', `This key lacks ${permission}.`, {
        'WWW-Authenticate': `${this.#challenge}, error="insufficient_scope", scope="${permission}"`,
      });
    }
    c.set('principal', principal);
    return undefined;
  }
}
