# Facts about a key, for other resources. The secret stays out of the state, which anyone who can run a plan can read.
# Run Terraform on the machine of the key store, as the user who owns it, with node and svc-api in its PATH. If the key does not exist,
# the plan fails and says so.
terraform {
  required_providers {
    external = {
      source = "hashicorp/external"
    }
  }
}

data "external" "ci_deploy" {
  program = ["node", "${path.module}/key.mjs"]
  query = {
    name = "CI deploy"
  }
}

output "ci_deploy" {
  value = data.external.ci_deploy.result
}
