import type { Principal } from 'svc-api';

declare global {
  namespace App {
    interface Locals {
      principal?: Principal;
    }
  }
}
