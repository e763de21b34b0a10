# Applies the keys that keys.yaml, beside this file, declares. Run `terraform apply` on a schedule, because it also renews and rotates
# keys that are due. The secrets go into files, and stay out of the state. Run Terraform as the user who owns the key store, with
# svc-api in its PATH.
resource "terraform_data" "keys" {
  # Only the store knows which keys are due, so this asks it each time.
  triggers_replace = timestamp()

  provisioner "local-exec" {
    working_dir = path.module
    command     = "svc-api apikey apply -f keys.yaml --secrets-dir secrets"
  }
}
