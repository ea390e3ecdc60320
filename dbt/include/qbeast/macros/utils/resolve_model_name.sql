{# The name of the table that a Python model's dbt.ref and dbt.source read. dbt's own macro renders the
   text of source(), which is a subquery in a run on a sample. Here, the sample is taken when the table
   is read. #}
{% macro qbeast__resolve_model_name(input_model_name) -%}
  {%- set is_relation = input_model_name.render is defined -%}
  {{ default__resolve_model_name(input_model_name.render() if is_relation else input_model_name) }}
{%- endmacro %}
