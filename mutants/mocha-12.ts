import { registerHooks } from 'node:module';

// Stryker's runner for mocha asks for these files by the names that they had before mocha 12.
registerHooks({
  resolve: (name, context, next) => next(/\/mocha\/lib\/cli\/[a-z-]+$/.test(name) ? `${name}.cjs` : name, context),
});
