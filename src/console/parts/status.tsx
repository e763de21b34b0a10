/** Whether a key is accepted, see `ApiKeyStatus`. */
export type KeyStatus = 'ACTIVE' | 'DISABLED' | 'EXPIRED';

const WORDS = { ACTIVE: 'active', DISABLED: 'disabled', EXPIRED: 'expired' } as const;

/** The status of a key: a word, and a colour beside it. */
export function Status({ is }: { is: KeyStatus }) {
  return <span class={`status ${WORDS[is]}`}>{WORDS[is]}</span>;
}
