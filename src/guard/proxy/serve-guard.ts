import { affordableConnections } from '../../http/descriptors.ts';
import { serveRequests, type ServerOptions, type StartedServer } from '../../http/serve-requests.ts';
import { Guard, type GuardOptions } from './guard.ts';
import type { GuardRules } from './rules.ts';

/** A guard that accepts requests. */
export interface RunningGuard extends StartedServer {
  /** See `Guard.changeRules`. */
  changeRules(rules: GuardRules): void;
}

/** A client's, and that to the upstream for it. */
const DESCRIPTORS_EACH = 2;

/**
 * Starts a guard. When it stops, requests in flight are finished, and connections whose protocol was switched end.
 * @throws KeysError LISTEN_FAILED if the address is not available; TLS_INVALID for a certificate that cannot be used
 */
export async function serveGuard(
  options: Omit<GuardOptions, 'maxConnections'>,
  rules: GuardRules,
  server: ServerOptions,
): Promise<RunningGuard> {
  const connections = affordableConnections(server.limits?.connections, DESCRIPTORS_EACH);
  const guard = new Guard({ ...options, maxConnections: connections }, rules);
  // Large bodies take their time: the guard ends those that do not go on.
  const limits = { ...server.limits, connections, requestMs: 0 };
  const started = await serveRequests(guard, { ...server, limits });
  return {
    ...started,
    changeRules: (changed) => guard.changeRules(changed),
    async stop(graceMs) {
      guard.endTunnels();
      await started.stop(graceMs);
      guard.close();
    },
  };
}
