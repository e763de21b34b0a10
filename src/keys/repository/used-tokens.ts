import { declarePort } from '../basics/index.ts';

/** Records used tokens, and other things that may happen only once. */
interface UsedTokens {
  /**
   * Records a token, by its digest or another name, until a time in milliseconds since 1970, and removes expired
   * records.
   * @returns false if it was used before
   */
  use(digest: string, until: number, now: number): Promise<boolean>;
  /** Removes the record of a token whose use had no effect. */
  giveBack(digest: string): Promise<void>;
}
export const USED_TOKENS = declarePort<object, UsedTokens>('used tokens');
