import { oneOf, orUndefined } from '../../keys/basics/index.ts';

export const CONSENT_MODES = ['off', 'device', 'code', 'both'] as const;
/**
 * How applications can ask for keys: not at all, by a code that they show, by a page that they open, or both. If unset,
 * only `svc-api login` can, by a code.
 */
export type ConsentMode = (typeof CONSENT_MODES)[number];

/** The rule for the option `consent`. A program can pass on that svc-api.yaml has no value. */
export const CONSENT_RULE = orUndefined(oneOf(...CONSENT_MODES));
