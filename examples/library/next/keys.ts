import { openKeys, type OpenKeys } from 'svc-api';

let opened: Promise<OpenKeys> | undefined;

/** The key store, which is opened once, with the first request: Next loads this file while it builds as well. */
export function keys(): Promise<OpenKeys> {
  return (opened ??= openKeys());
}
