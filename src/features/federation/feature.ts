import { existsSync } from 'node:fs';
import type { OwnFeature } from '../../feature.ts';
import type { FederationRule } from './federation-rule.ts';

declare module '../../config/config.ts' {
  interface Config {
    /** Rules that exchange tokens of issuers for keys. */
    readonly federation: readonly FederationRule[];
  }
}

/** Keys for other keys, and for tokens of trusted issuers. */
export const federation: OwnFeature = {
  name: 'federation',
  needs: ['consent', 'people', 'unused-keys'],
  commands: {
    'apikey:explain': {
      form: {
        syntax: 'FILE',
        args: ["file with a pipeline's token (- for stdin)"],
        description:
          'For the token (JWT) that a platform such as GitHub Actions gives a pipeline, not for API keys: these ' +
          'are for ' +
          '"apikey verify". Shows which rule of "federation" in svc-api.yaml the token meets, or why it meets none. ' +
          "Downloads the issuer's keys to verify the token, which is never sent or printed. Does not check whether it " +
          'was used before. Exits with 0 if a rule is met, otherwise with 1.',
        examples: [
          ['Explain why the token of a pipeline is refused', './token'],
          ['The same from stdin, as JSON', '- --json < ./token'],
        ],
        // The name of a key without a permission is no file, nor is a URL without a method.
        takes: ([file, ...others]) =>
          others.length === 0 &&
          file !== undefined &&
          !/^https?:/i.test(file) &&
          (file === '-' || /[./\\]/.test(file) || existsSync(file)),
      },
      flags: {},
      run: async (command) => (await import('./cli/explain.ts')).runExplain(command),
    },
  },
  routes: async (_, context) => (await import('./routes.ts')).addExchange(context),
  checks: [{ name: 'FEDERATION', run: async (context) => (await import('./checks.ts')).checkFederation(context) }],
  config: {
    defaults: { federation: [] },
    sections: { federation: async () => (await import('./config.ts')).federation },
  },
};
