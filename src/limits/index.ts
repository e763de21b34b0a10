/** Limits of requests: leases of processes, and attempts per address. */
export {
  grantLease,
  type Lease,
  type LeasedLimit,
  type LeaseGrant,
  type LeaseRequest,
  type LimitState,
  type LimitStore,
} from './lease.ts';
export { type Answer, AttemptCounter, type Limited, Limiter, type Standing } from './limiter.ts';
