/** Limits of requests: leases of processes, and attempts per address. */
export {
  grantLease,
  type Lease,
  type LeaseGrant,
  type LeaseRequest,
  type LimitState,
  type LimitStore,
  readLeaseRequests,
} from './lease.ts';
export { type Answer, AttemptCounter, type Limited, Limiter, type Standing } from './limiter.ts';
