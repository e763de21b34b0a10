import { KeysError } from '../../keys/basics/index.ts';
import type { Catalog } from '../../keys/permissions/index.ts';
import type { ConsentMode } from './modes.ts';

/**
 * Ways to get a key: showing a code to a person (RFC 8628), or opening a page that redirects back (RFC 6749, section
 * 4.1).
 */
export type ConsentFlow = 'DEVICE' | 'CODE';

const FLOWS: Readonly<Record<ConsentMode, readonly ConsentFlow[]>> = {
  off: [],
  device: ['DEVICE'],
  code: ['CODE'],
  both: ['DEVICE', 'CODE'],
};

/** The enabled ways. The default is the one of `svc-api login`. */
export function consentFlows({ consent = 'device' }: Pick<Catalog, 'consent'>): readonly ConsentFlow[] {
  return FLOWS[consent];
}

/** Requires an enabled way. @throws KeysError CONSENT_OFF */
export function requireFlow(catalog: Pick<Catalog, 'consent'>, flow: ConsentFlow): void {
  if (consentFlows(catalog).includes(flow)) return;
  const { consent } = catalog;
  const ways = {
    off: 'Applications cannot request keys',
    device: 'Applications can only request keys by showing a code',
    code: 'Applications can only request keys by opening a page',
    both: '',
  };
  const message =
    consent === undefined
      ? 'Only "svc-api login" can request keys. To allow other applications, set "consent: both" in svc-api.yaml.'
      : `${ways[consent]}: "consent" in svc-api.yaml is ${consent}.`;
  throw new KeysError('CONSENT_OFF', message);
}
