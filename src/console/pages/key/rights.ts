import type { KeyChangeKind, PossibleChange } from '../../../keys/changes/possible-changes.ts';
import { inYourWords } from '../../parts/notice.tsx';
import type { Visit } from '../../visit.tsx';

/** What somebody is permitted to do to a key, by the rules that decide when they do so. */
export class Rights {
  /** Why each change is refused; null if it is not. */
  readonly #reasons: ReadonlyMap<KeyChangeKind, string | null>;
  /** Whether it is the key that the person has signed in with. */
  readonly isSelf: boolean;
  /** Whether that key ends with it: it is the same, or a child key of it. */
  readonly endsSession: boolean;
  /** Whether they have signed in with a previous secret, which changes no key. */
  readonly isPrevious: boolean;

  constructor({ principal }: Visit, id: string, changes: readonly PossibleChange[]) {
    this.#reasons = new Map(changes.map(({ change, refusal }) => [change, refusal && inYourWords(refusal.reason)]));
    this.isSelf = id === principal.apiKey.id;
    this.endsSession = principal.chain.keys.some((key) => key.id === id);
    this.isPrevious = principal.secret === 'previous';
  }

  /** Whether a change would be made. */
  may(change: KeyChangeKind): boolean {
    return this.#reasons.get(change) === null;
  }

  /** Why a change would be refused; undefined if it would not. */
  whyNot(change: KeyChangeKind): string | undefined {
    return this.#reasons.get(change) ?? undefined;
  }
}
