import { declarePort } from '../basics/index.ts';

/** Remembers which tokens were used, and what else happens once. */
interface UsedTokens {
  /**
   * Remembers a token, by its digest or another name, until a time, in milliseconds since 1970, and forgets those
   * whose time has come.
   * @returns whether it was not used before
   */
  use(digest: string, until: number, now: number): Promise<boolean>;
  /** Forgets one whose use has led to nothing. */
  giveBack(digest: string): Promise<void>;
}
export const USED_TOKENS = declarePort<object, UsedTokens>('used tokens');
