import { openKeys, type OpenKeys } from 'svc-api';

let opened: Promise<OpenKeys> | undefined;

/** The key store, opened with the first request, since Next also loads this file during the build. */
export function keys(): Promise<OpenKeys> {
  return (opened ??= openKeys());
}
