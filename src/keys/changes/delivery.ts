import { aFunction, required, type Rules } from '../basics/index.ts';
import type { ApiKey } from '../key/index.ts';

/** A key with a secret that was just made for it: the only time that secret is known. */
export interface NewSecret {
  /** The secret. */
  key: string;
  /** The key that it belongs to. */
  apiKey: ApiKey;
}

/**
 * Delivers the secrets of a change. A step that throws, which must be a `KeysError`, leaves the keys as they were
 * before the change.
 */
export interface SecretDelivery<Change> {
  /** Is told that a change is about to be asked for whose secrets come from elsewhere. */
  begin?: () => void;
  /**
   * Saves the secrets before the change is committed. It holds the write lock, so it must not wait for anything; it is
   * called again where the database asks for the transaction to be repeated.
   */
  prepare?: (change: Change) => void;
  /** Hands the secrets over after the change was committed. */
  deliver: (change: Change) => void | Promise<void>;
}

// oxlint-disable-next-line typescript/no-explicit-any -- of any change
export const DELIVERY_OPTIONS: Rules<SecretDelivery<any>> = {
  begin: aFunction(),
  prepare: aFunction(),
  deliver: required(aFunction()),
};

export function presented<Change, Shown>(
  { prepare, deliver }: SecretDelivery<Shown>,
  present: (change: Change) => Shown,
): SecretDelivery<Change> {
  return {
    prepare: (change) => prepare?.(present(change)),
    deliver: (change) => deliver(present(change)),
  };
}
