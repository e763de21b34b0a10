import type { IncomingMessage } from 'node:http';
import type { Admission, Admitted, BearerCheck } from '../../http/bearer-check.ts';
import { NodeHead } from '../../http/node-head.ts';
import { withFields } from '../../http/rate-limit-fields.ts';
import type { RefusalLog } from '../../http/refusal-log.ts';
import { errorReply, type Reply } from '../../http/replies.ts';
import type { Permission } from '../../keys/permissions/catalog.ts';
import { checkAllow, describeMatch } from '../../routes/decide.ts';
import { preflightParts, type RequestParts } from '../../routes/request.ts';
import type { Allow } from '../../routes/router.ts';
import { refusedRequest } from '../refused-request.ts';
import type { RequestTarget } from './request-target.ts';
import type { JudgedRequest, Requirements } from './requirement.ts';

/** A request that may pass. */
export interface Entered {
  /** Undefined where no key is needed. */
  readonly admitted: Admitted | undefined;
  /** The permissions by which it may. */
  readonly permissions: readonly Permission[];
}

/** A request that may pass, or the reply to one that may not. */
export type Entry = Entered | { readonly refusal: Reply };

const OPEN: Entered = { admitted: undefined, permissions: [] };

/** A request as it is decided about: by the same target that is passed on. */
export class GuardedRequest extends NodeHead implements JudgedRequest {
  readonly parts: RequestParts;
  readonly rawHeaders: readonly string[];

  constructor(incoming: IncomingMessage, { host, path }: RequestTarget) {
    super(incoming);
    this.rawHeaders = incoming.rawHeaders;
    this.parts = {
      method: incoming.method ?? '',
      host,
      target: path,
      ...preflightParts((name) => this.header(name)),
    };
  }
}

/** What decides about requests. */
export interface AccessOptions {
  readonly check: BearerCheck;
  readonly requirements: Requirements;
  readonly refusals: RefusalLog;
}

/** Decides which requests may pass. */
export class Access {
  readonly #options: AccessOptions;

  constructor(options: AccessOptions) {
    this.#options = options;
  }

  /** Decides about a request that has just arrived. Counts as a use of its key. */
  enter(request: GuardedRequest): Entry | Promise<Entry> {
    return this.#decide(request, () => this.#options.check.enter(request));
  }

  /** Decides again about a request that may pass, as things are now. Counts as a use if no key was needed so far. */
  again(request: GuardedRequest, { admitted }: Entered): Entry | Promise<Entry> {
    const { check } = this.#options;
    return this.#decide(request, () => (admitted ? check.again(request, admitted) : check.enter(request)));
  }

  #decide(request: GuardedRequest, authenticate: () => Admission | Promise<Admission>): Entry | Promise<Entry> {
    const requirement = this.#options.requirements(request);
    if ('refusal' in requirement) return { refusal: this.#refuse(request, requirement.refusal) };
    const { allow } = requirement;
    const details = request.notes?.details;
    if (details && requirement.match) details.route = describeMatch(requirement.match);
    if (allow.kind === 'open') return OPEN;
    const admission = authenticate();
    return admission instanceof Promise
      ? admission.then((settled) => this.#authorize(settled, allow))
      : this.#authorize(admission, allow);
  }

  #authorize(admission: Admission, allow: Allow): Entry {
    if ('refusal' in admission) return admission;
    const { principal } = admission;
    const checked = checkAllow(allow, principal.access);
    if (checked.outcome === 'forbidden') {
      principal.observer?.lacked(checked.missing);
      return { refusal: withFields(this.#options.check.lacking(checked.missing), admission.fields) };
    }
    for (const permission of checked.used) principal.observer?.used(permission);
    return { admitted: admission, permissions: checked.used };
  }

  #refuse(request: GuardedRequest, refusal: string): Reply {
    const detail = refusedRequest(refusal, request.parts);
    const refused = { reason: 'no route', detail, address: request.peer() };
    if (request.notes?.details) request.notes.details.code = 'FORBIDDEN';
    this.#options.refusals.add('request refused', refused, request.notes);
    return errorReply(403, 'FORBIDDEN', `This request is not passed on: ${refusal}.`);
  }
}
