import { KeysError } from '../../keys/basics/index.ts';
import type { Catalog, ConsentMode } from '../../keys/permissions/index.ts';

/**
 * How an application gets its key: by a code that it shows to a person (RFC 8628), or by sending that person to a page,
 * which sends them back (RFC 6749, section 4.1).
 */
export type ConsentFlow = 'DEVICE' | 'CODE';

const FLOWS: Readonly<Record<ConsentMode, readonly ConsentFlow[]>> = {
  off: [],
  device: ['DEVICE'],
  code: ['CODE'],
  both: ['DEVICE', 'CODE'],
};

/** The ways in which applications may ask. Where nothing is said, it is the one of `svc-api login`. */
export function consentFlows({ consent = 'device' }: Pick<Catalog, 'consent'>): readonly ConsentFlow[] {
  return FLOWS[consent];
}

/** Refuses a way in which applications may not ask. @throws KeysError CONSENT_OFF */
export function requireFlow(catalog: Pick<Catalog, 'consent'>, flow: ConsentFlow): void {
  if (consentFlows(catalog).includes(flow)) return;
  const { consent } = catalog;
  const ways = {
    off: 'No application may ask for a key',
    device: 'Applications may ask for keys only by codes that they show',
    code: 'Applications may ask for keys only by pages that they open',
    both: '',
  };
  const message =
    consent === undefined
      ? 'Only the login of svc-api itself may ask for keys. Others may where svc-api.yaml says so: consent: both.'
      : `${ways[consent]}: "consent" in svc-api.yaml is ${consent}.`;
  throw new KeysError('CONSENT_OFF', message);
}
