import type { Authentication } from '../keys/authentication/authenticate.ts';
import { type Principal, uses } from '../keys/authorization/principal.ts';
import type { Action, Permission } from '../keys/permissions/catalog.ts';
import { splitPermission } from '../keys/permissions/permission-set.ts';
import { digestSecret, prefixOf } from '../keys/secret/secret.ts';
import type { KeysService } from '../keys/service.ts';
import type { Log } from '../log.ts';
import { readCredentials } from './credentials.ts';
import type { FailureLog } from './failure-log.ts';
import type { RefusalLog } from './refusal-log.ts';
import { errorReply, type Reply, unavailable } from './replies.ts';
import type { RequestHead } from './request-head.ts';
import { type Addressed, RequestObserver } from './request-observer.ts';

/** Which keys are accepted. */
export interface BearerAuthOptions {
  /** The service of an open key store, see `openKeys`. */
  keys: Pick<KeysService, 'authenticator'>;
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

/** What is checked of a request. */
export interface CheckedRequest extends Addressed {
  readonly head: Pick<RequestHead, 'authorization'>;
}

/** A request that was let in: who makes it, and by which token. */
export interface Admitted {
  /** With an observer of this request. */
  readonly principal: Principal;
  /** As it was authenticated. */
  readonly authenticated: Principal;
  readonly token: string;
  readonly digest: string;
}

/** Who makes a request, or the reply to one that must be refused. */
export type Admission = Admitted | { readonly refusal: Reply };

/** Checks the bearer token of requests (RFC 6750). */
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

  /** Checks a request that has just arrived. Counts as a use of its key. */
  enter(request: CheckedRequest): Admission | Promise<Admission> {
    const credentials = readCredentials(request.head.authorization);
    if (credentials === 'none') {
      const message = 'Missing API key: send it as "Authorization: Bearer <API key>".';
      return this.#refuse(401, 'UNAUTHENTICATED', message);
    }
    if (credentials === 'malformed') {
      const message = 'The Authorization header is malformed: send exactly one, as "Bearer <API key>".';
      return this.#refuse(400, 'INVALID_REQUEST', message, ', error="invalid_request"');
    }
    const { token } = credentials;
    const digest = digestSecret(token);
    const { authenticator } = this.#options.keys;
    const verified = authenticator.findVerified(digest);
    if (!verified)
      return this.#ask(request, { token, digest }, () => authenticator.authenticate(token, request.address()));
    authenticator.countUse(verified);
    return this.#admit(request, { token, digest }, verified.principal);
  }

  /**
   * Checks a request again that was let in: its key may have been deleted while the body arrived. Counts as no further
   * use.
   */
  again(request: CheckedRequest, admitted: Admitted): Admission | Promise<Admission> {
    const { token, digest, authenticated } = admitted;
    const { authenticator } = this.#options.keys;
    const verified = authenticator.findVerified(digest);
    if (verified?.principal === authenticated) return admitted;
    if (!verified) return this.#ask(request, { token, digest }, () => authenticator.confirm(token, request.address()));
    return this.#admit(request, { token, digest }, verified.principal);
  }

  async #ask(
    request: CheckedRequest,
    credentials: Pick<Admitted, 'token' | 'digest'>,
    authenticate: () => Authentication | Promise<Authentication>,
  ): Promise<Admission> {
    let result;
    try {
      result = await authenticate();
    } catch (error) {
      this.#logs.failures.add(error);
      return { refusal: unavailable() };
    }
    if ('principal' in result) return this.#admit(request, credentials, result.principal);
    const prefix = result.publicId === undefined ? undefined : prefixOf(result.publicId);
    this.#logs.refusals.add('key refused', { reason: result.refused, prefix, address: request.address() });
    return this.#refuse(401, 'UNAUTHENTICATED', 'The API key is not valid.', ', error="invalid_token"');
  }

  #admit(
    request: CheckedRequest,
    { token, digest }: Pick<Admitted, 'token' | 'digest'>,
    authenticated: Principal,
  ): Admission {
    const observer = new RequestObserver(authenticated, this.#logs.refusals, request);
    const { key, chain, access, secret } = authenticated;
    const principal: Principal = { key, chain, access, secret, observer };
    if (!this.#required || uses(principal, ...this.#required)) return { principal, authenticated, token, digest };
    const permission = this.#options.permission!;
    observer.lacked([permission]);
    const problem = `, error="insufficient_scope", scope="${permission}"`;
    return this.#refuse(403, 'FORBIDDEN', `This key lacks ${permission}.`, problem);
  }

  #refuse(
    status: number,
    code: 'UNAUTHENTICATED' | 'INVALID_REQUEST' | 'FORBIDDEN',
    message: string,
    problem = '',
  ): { refusal: Reply } {
    return { refusal: errorReply(status, code, message, { 'WWW-Authenticate': this.#challenge + problem }) };
  }
}
