import type { Reply } from '../../http/index.ts';
import type { Principal } from '../../keys/authorization/index.ts';
import type { Permission } from '../../keys/permissions/index.ts';
import type { KeysService } from '../../keys/service/index.ts';
import { describePattern, type Match, type Route } from '../routes/index.ts';

/** Routes that observe: they allow requests that they would refuse, and record them. */
export class ObservedRoutes {
  readonly #note: KeysService['authenticator']['noteObserved'];
  /** Observing routes that were already logged. */
  readonly #known = new Set<Route>();

  constructor(authenticator: Pick<KeysService['authenticator'], 'noteObserved'>) {
    this.#note = (...observed) => authenticator.noteObserved(...observed);
  }

  /** Checks whether a route observes, and logs that once. */
  has(match: Match | undefined): match is Match {
    if (!match?.route.observe) return false;
    if (!this.#known.has(match.route)) this.#note(describePattern(match.route), 'observing');
    this.#known.add(match.route);
    return true;
  }

  /** Lets a key pass that lacks permissions. */
  noteLacking({ route }: Match, principal: Principal, missing: readonly Permission[]): void {
    this.#note(describePattern(route), 'forbidden', { principal, missing });
  }

  /** Checks whether a refused request still passes: always, unless the store does not answer. */
  passes({ route }: Match, { status }: Pick<Reply, 'status'>): boolean {
    if (status >= 500) return false;
    this.#note(describePattern(route), status === 401 ? 'no valid key' : 'refused');
    return true;
  }
}
