import type { Reply } from '../../http/index.ts';
import type { Principal } from '../../keys/authorization/index.ts';
import type { Permission } from '../../keys/permissions/index.ts';
import type { KeysService } from '../../keys/service/index.ts';
import { describePattern, type Match, type Route } from '../routes/index.ts';

/** Routes that observe: they let pass what they would refuse, and that is noted. */
export class ObservedRoutes {
  readonly #note: KeysService['authenticator']['noteObserved'];
  /** Those of which it was noted that they observe. */
  readonly #known = new Set<Route>();

  constructor(authenticator: Pick<KeysService['authenticator'], 'noteObserved'>) {
    this.#note = (...observed) => authenticator.noteObserved(...observed);
  }

  /** Whether a route does so, which is noted once. */
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

  /** Whether a request passes nevertheless: unless the store does not answer. */
  passes({ route }: Match, { status }: Pick<Reply, 'status'>): boolean {
    if (status >= 500) return false;
    this.#note(describePattern(route), status === 401 ? 'no valid key' : 'refused');
    return true;
  }
}
